mod delayed_work;
pub mod unload;
pub mod work_queue;

