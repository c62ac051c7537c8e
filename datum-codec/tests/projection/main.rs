//! The projected decoder against serde_json: same values, same records refused.

mod forms;
mod oracle;
mod random_text;
mod sample_records;
mod values;
