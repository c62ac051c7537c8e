//! Hand-over between tasks: the bounded chunk hand-over of async boundaries, and the concurrency primitives of datum.
