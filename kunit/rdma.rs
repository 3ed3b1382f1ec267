// SPDX-License-Identifier: GPL-2.0

//! KUnit tests of the files of src/base and src/rdma that need no device.

use kernel::prelude::*;

#[allow(dead_code)]
#[path = "../src/rdma/messages/arrival.rs"]
mod arrival;
#[path = "../src/rdma/messages/capacity.rs"]
mod capacity;
#[allow(dead_code)]
#[path = "../src/rdma/verbs/memory.rs"]
mod memory;
#[path = "../src/rdma/messages/send_buffer.rs"]
mod send_buffer;
#[path = "../src/rdma/messages/seqno.rs"]
mod seqno;

#[kunit_tests(rpcrdma_cm_rdma)]
mod tests {
    use super::{
        arrival::Invalidated,
        capacity::Capacity,
        memory::{
            Memory,
            BLOCK, //
        },
        send_buffer::SendBuffer,
        seqno::Seqno, //
    };
    use crate::base::{
        draining::Draining,
        errno::errno,
        wait::{
            wait_while,
            MayWait, //
        }, //
    };
    use kernel::{
        bindings,
        new_condvar,
        new_mutex,
        page::PAGE_SIZE,
        prelude::*,
        sync::{
            CondVar,
            Mutex, //
        },
        time::{
            Instant,
            Monotonic, //
        }, //
    };

    /// An rkey is used again after 256 registrations.
    #[test]
    fn an_old_invalidation_does_not_end_a_later_registration() {
        let queue_pair = Seqno::next();
        let another = Seqno::next();
        let registered = Seqno::next();
        let invalidated = Invalidated::now(queue_pair, 0x100);
        let registered_again = Seqno::next();

        assert!(invalidated.has_ended(queue_pair, 0x100, registered));
        assert!(!invalidated.has_ended(queue_pair, 0x101, registered));
        assert!(!invalidated.has_ended(another, 0x100, registered));
        assert!(!invalidated.has_ended(queue_pair, 0x100, registered_again));
        assert!(Invalidated::now(queue_pair, 0x100).has_ended(queue_pair, 0x100, registered_again));
    }

    #[test]
    fn capacity_is_checked() -> Result {
        assert!(Capacity::new(0, 1024, 16, 1024).is_err());
        assert!(Capacity::new(32, 0, 16, 1024).is_err());
        assert!(Capacity::new(32, 1024, 16, 0).is_err());
        assert!(Capacity::new(32, 1024, 0, 1024).is_err());
        assert!(Capacity::new(u32::MAX, 1024, 16, 1024).is_err());
        assert!(Capacity::new(32, 1024, u32::MAX, 1024).is_err());
        assert!(Capacity::new(i32::MAX as u32, 1024, 1, 1024).is_err());

        let capacity = Capacity::new(32, 4096, 16, 1024)?;
        assert_eq!(capacity.receive_size(), 4096);
        assert_eq!(capacity.send_size(), 1024);
        assert_eq!(capacity.posted_receives(), 33);
        assert_eq!(capacity.max_recv_wr(), 34);
        assert_eq!(capacity.sends(), 16);
        assert_eq!(capacity.max_send_wr(), 18);
        assert!(capacity.completions() >= 34 + 18 + 3 * Capacity::TRANSFERS);
        Ok(())
    }

    #[test]
    fn send_buffer_has_the_length_that_was_written() -> Result {
        let too_long = Some(errno(bindings::EMSGSIZE));
        let mut bytes = [0xa5; 8];
        let mut message = SendBuffer::new(&mut bytes);

        assert_eq!(message.append(1 << 20).err(), too_long);
        assert_eq!(message.append_with(|_| Ok(1 << 20)).err(), too_long);
        assert_eq!(message.append_with(|_| Ok(usize::MAX)).err(), too_long);
        assert_eq!(message.append_with(|_| Err(EINVAL)).err(), Some(EINVAL));
        assert_eq!(message.len(), 0);

        message.append(3)?.copy_from_slice(b"abc");
        assert_eq!(
            message.append_with(|room| Ok(room.len() + 1)).err(),
            too_long
        );
        assert_eq!(message.append(6).err(), too_long);
        assert_eq!(message.len(), 3);
        message.append_with(|room| Ok(room.len() - 1))?;
        assert_eq!(message.append(1)?.len(), 1);
        assert_eq!(message.len(), 8);
        assert!(bytes == *b"abc\xa5\xa5\xa5\xa5\0");
        Ok(())
    }

    #[test]
    fn memory_has_blocks_of_whole_pages() -> Result {
        assert_eq!(BLOCK % PAGE_SIZE, 0);

        let mut memory = Memory::new();
        memory.grow(2 * BLOCK + 5)?;
        assert_eq!(memory.len(), 2 * BLOCK + 5);
        assert!(memory.pieces_mut(0, usize::MAX).all(|piece| {
            let address = piece.as_ptr() as usize;
            address % PAGE_SIZE == 0 && piece.iter().all(|&byte| byte == 0)
        }));
        assert_eq!(memory.pieces(0, usize::MAX).count(), 3);

        memory.write(BLOCK - 2, b"abcd");
        memory.write(2 * BLOCK + 4, b"yz");
        let mut pieces = memory.pieces(BLOCK - 2, 4);
        assert!(pieces.next() == Some(b"ab"));
        assert!(pieces.next() == Some(b"cd"));
        assert!(pieces.next().is_none());
        assert!(memory.pieces(2 * BLOCK + 4, 9).next() == Some(b"y"));
        Ok(())
    }

    #[test]
    fn drained_values_are_not_used() -> Result {
        // SAFETY: Nothing waits for this test.
        let may_wait = &unsafe { MayWait::new() };
        let owner = Draining::new()?;
        let handle = owner.handle();
        assert!(handle.access(may_wait).is_none());
        assert!(!owner.is_used());

        assert!(owner.put(1).is_ok());
        assert!(owner.put(2) == Err(2));
        assert!(handle.access(may_wait).is_some_and(|value| *value == 1));
        owner.drain();
        assert!(handle.access(may_wait).is_none());
        assert!(owner.put(3) == Err(3));
        assert!(owner.is_used());

        let other = Draining::new()?;
        let handle = other.handle();
        assert!(other.put(4).is_ok());
        drop(other);
        assert!(handle.access(may_wait).is_none());
        Ok(())
    }

    #[pin_data]
    struct Waiter {
        #[pin]
        waits: Mutex<bool>,
        #[pin]
        changed: CondVar,
    }

    #[test]
    fn waiting_has_a_time_limit() -> Result {
        let waiter = KBox::pin_init(
            pin_init!(Waiter {
                waits <- new_mutex!(true),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )?;
        let start: Instant<Monotonic> = Instant::now();
        assert!(wait_while(&waiter.changed, &waiter.waits, 50, |&waits| {
            waits
        }));
        assert!(start.elapsed().as_millis() >= 40);
        *waiter.waits.lock() = false;
        assert!(!wait_while(
            &waiter.changed,
            &waiter.waits,
            60_000,
            |&waits| waits
        ));
        Ok(())
    }
}
