pub mod errno;

