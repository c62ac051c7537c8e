//! Producing and transactions on a real Apache Kafka, where `DATUM_TEST_KAFKA` names one (`host:port`); without it each test says that it
//! was skipped.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod producing;

macro_rules! scenarios {
    ($($name:ident)*) => {$(
        #[tokio::test]
        async fn $name() {
            match std::env::var("DATUM_TEST_KAFKA") {
                Ok(bootstrap) => producing::$name(&bootstrap).await,
                Err(_) => println!("skipped: DATUM_TEST_KAFKA is not set"),
            }
        }
    )*};
}

scenarios! {
    every_codec_arrives_in_order
    a_batch_too_large_is_cut
    a_small_buffer_makes_senders_wait
    transactions_are_visible_or_not
    a_successor_fences
    a_stale_generation_leaves_the_transaction_open
}
