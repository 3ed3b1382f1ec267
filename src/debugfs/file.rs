// SPDX-License-Identifier: GPL-2.0

//! Files and directories of debugfs that pin the module as long as they are open.
//!
//! Those of the kernel crate do not: their operations have no owner, so that the module can go
//! while somebody still has a file open, and the close that follows runs into freed memory.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h)

use core::{
    fmt,
    marker::PhantomData,
    ptr, //
};

use kernel::{
    bindings,
    error::from_err_ptr,
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use crate::{
    protocol::control::LINE_MAX,
    series::this_module, //
};

/// How many octets are taken of one write: more than any line that a [`Writable`] accepts, so that
/// it sees when there are too many.
const WRITE_MAX: usize = LINE_MAX + 1;

/// Whether who opens a file may.
///
/// Not only its mode says so: the files show the connections of all network namespaces, and act in
/// that of who writes. So they are for those who may enter any, which neither root without
/// capabilities nor root of a user namespace may.
///
/// Nobody may before the module's init has succeeded: where that fails, the module goes, whoever
/// has one of its files open.
fn may_open() -> Result {
    // SAFETY: Looks at the current task.
    if !unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as c_int) } {
        return Err(EPERM);
    }
    // SAFETY: This is always a module, which is there as long as its code runs.
    let state = unsafe { ptr::addr_of!((*this_module()).state).read_volatile() };
    match state {
        bindings::module_state_MODULE_STATE_LIVE => Ok(()),
        _ => Err(EBUSY),
    }
}

/// A file that shows something of its data.
pub(super) trait Readable: 'static {
    type Data: Send + Sync + 'static;

    /// Shows all of the file's content; process context, may sleep. May be called several times for
    /// one read, each time with more room.
    fn show(data: &Self::Data, out: &mut Output<'_>) -> fmt::Result;

    /// Returns how many octets that is probably going to be: room to begin with, so that what is
    /// long is not shown again and again.
    fn room(_data: &Self::Data) -> usize {
        PAGE_SIZE
    }
}

/// A file that takes lines.
pub(super) trait Writable: 'static {
    type Data: Send + Sync + 'static;

    /// Takes one write as a whole, or why that could not be read; process context of who writes,
    /// may sleep.
    fn write(data: &Self::Data, line: Result<&[u8]>) -> Result;
}

/// What a file shows goes here.
///
/// # Invariants
///
/// The pointer is to the `seq_file` of a read, valid and not shared for `'a`.
pub(super) struct Output<'a> {
    seq: *mut bindings::seq_file,
    _seq: PhantomData<&'a mut bindings::seq_file>,
}

impl Output<'_> {
    pub(super) fn write_octets(&mut self, octets: &[u8]) {
        // What does not fit is noted in the seq_file, which comes again with more room.
        // SAFETY: By the type invariant the `seq_file` is valid; the octets are copied.
        unsafe { bindings::seq_write(self.seq, octets.as_ptr().cast(), octets.len()) };
    }
}

impl fmt::Write for Output<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_octets(s.as_bytes());
        Ok(())
    }
}

/// Something in debugfs that goes when this is dropped, and before its parent.
///
/// Dropping it waits for who is reading or writing at the moment, so may sleep.
///
/// # Invariants
///
/// The pointer is to a dentry of debugfs that this owns.
struct Node {
    dentry: *mut bindings::dentry,
    _parent: Option<Arc<Node>>,
}

// SAFETY: Dentries belong to no thread.
unsafe impl Send for Node {}
// SAFETY: `&Node` gives only the pointer away, for functions that lock by themselves.
unsafe impl Sync for Node {}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the dentry is ours.
        unsafe { bindings::debugfs_remove(self.dentry) };
    }
}

/// A directory; it stays as long as there is something in it.
pub(crate) struct Dir(Arc<Node>);

impl Dir {
    /// Makes a directory in `parent`, or at the top; may sleep.
    ///
    /// Fails with `EEXIST` where the name is taken, and with `EPERM` where debugfs may not be used.
    pub(crate) fn new(name: &CStr, parent: Option<&Dir>) -> Result<Self> {
        let parent = parent.map(|dir| dir.0.clone());
        let dentry = parent.as_ref().map_or(ptr::null_mut(), |node| node.dentry);
        // SAFETY: The name is copied; the parent is NULL or a directory that is held.
        let dentry = unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), dentry) };

        // INVARIANT: What is not an error pointer is a new dentry.
        let node = Node {
            dentry: from_err_ptr(dentry)?,
            _parent: parent,
        };
        Ok(Self(Arc::new(node, GFP_KERNEL)?))
    }

    /// Makes a file that only root may read; may sleep.
    pub(super) fn readable<R: Readable>(
        &self,
        name: &CStr,
        data: Arc<R::Data>,
    ) -> Result<File<R::Data>> {
        // SAFETY: The operations take what `data` points to.
        unsafe { self.file(name, 0o400, data, &Reading::<R>::OPERATIONS) }
    }

    /// Makes a file that only root may write to; may sleep.
    pub(super) fn writable<W: Writable>(
        &self,
        name: &CStr,
        data: Arc<W::Data>,
    ) -> Result<File<W::Data>> {
        // SAFETY: The operations take what `data` points to.
        unsafe { self.file(name, 0o200, data, &Writing::<W>::OPERATIONS) }
    }

    /// Makes a file that only root may write to, and then read what came of it; may sleep.
    pub(super) fn answering<F>(
        &self,
        name: &CStr,
        data: Arc<<F as Writable>::Data>,
    ) -> Result<File<<F as Writable>::Data>>
    where
        F: Readable<Data = <F as Writable>::Data> + Writable,
    {
        // SAFETY: The operations take what `data` points to.
        unsafe { self.file(name, 0o600, data, &Answering::<F>::OPERATIONS) }
    }

    /// # Safety
    ///
    /// The operations must expect the inode's private data to point to a `T`.
    unsafe fn file<T>(
        &self,
        name: &CStr,
        mode: u16,
        data: Arc<T>,
        operations: &'static bindings::file_operations,
    ) -> Result<File<T>> {
        // SAFETY: The name is copied; the directory is held; the operations are static, and `data`
        // stays until the file has been removed.
        let dentry = unsafe {
            bindings::debugfs_create_file_full(
                name.as_char_ptr(),
                mode,
                self.0.dentry,
                Arc::as_ptr(&data).cast_mut().cast(),
                ptr::null(),
                operations,
            )
        };

        Ok(File {
            // INVARIANT: What is not an error pointer is a new dentry.
            _node: Node {
                dentry: from_err_ptr(dentry)?,
                _parent: Some(self.0.clone()),
            },
            _data: data,
        })
    }
}

/// A file; it goes before the data that it shows or acts on.
pub(super) struct File<T> {
    _node: Node,
    _data: Arc<T>,
}

struct Reading<R>(PhantomData<R>);

impl<R: Readable> Reading<R> {
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        owner: this_module(),
        open: Some(Self::open),
        read: Some(bindings::seq_read),
        llseek: Some(bindings::seq_lseek),
        release: Some(bindings::single_release),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Called only by debugfs, for a file whose inode's private data points to an `R::Data`.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        if let Err(error) = may_open() {
            return error.to_errno();
        }

        // SAFETY: By the function's requirement the inode is valid.
        let data = unsafe { (*inode).i_private };
        // SAFETY: By the function's requirement it is one. It goes only after the file has been
        // removed, which waits for who opens it.
        let room = R::room(unsafe { &*data.cast::<R::Data>() });
        // SAFETY: By the function's requirement the file is valid, and `show` takes such data.
        unsafe { bindings::single_open_size(file, Some(Self::show), data, room.max(PAGE_SIZE)) }
    }

    /// # Safety
    ///
    /// Called only for a `seq_file` that [`Self::open`] opened.
    unsafe extern "C" fn show(seq: *mut bindings::seq_file, _: *mut c_void) -> c_int {
        // SAFETY: By the function's requirement the `seq_file` is valid.
        let data = unsafe { (*seq).private };
        // SAFETY: By the requirement of `open`. debugfs reads only as long as the file has not been
        // removed, and removing it waits for who reads; the data goes after that.
        let data = unsafe { &*data.cast::<R::Data>() };

        // INVARIANT: seq_file calls this with its lock held.
        let mut out = Output {
            seq,
            _seq: PhantomData,
        };
        match R::show(data, &mut out) {
            Ok(()) => 0,
            Err(fmt::Error) => EIO.to_errno(),
        }
    }
}

struct Writing<W>(PhantomData<W>);

impl<W: Writable> Writing<W> {
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        owner: this_module(),
        open: Some(Self::open),
        write: Some(Self::write),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Called only by debugfs, for a file whose inode's private data points to a `W::Data`.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        if let Err(error) = may_open() {
            return error.to_errno();
        }

        // SAFETY: By the function's requirement the inode is valid.
        let data = unsafe { (*inode).i_private };
        // SAFETY: By the function's requirement the file is valid.
        unsafe { (*file).private_data = data };
        0
    }

    /// # Safety
    ///
    /// Called only by debugfs, for a file that [`Self::open`] opened.
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        from: *const c_char,
        len: usize,
        _: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: By the function's requirement the file is valid.
        let data = unsafe { (*file).private_data };
        // SAFETY: By the requirement of `open`. debugfs writes only as long as the file has not
        // been removed, and removing it waits for who writes; the data goes after that.
        let data = unsafe { &*data.cast::<W::Data>() };

        take_line::<W>(data, from, len)
    }
}

/// Hands what somebody writes to `W`.
fn take_line<W: Writable>(data: &W::Data, from: *const c_char, len: usize) -> isize {
    let user = UserSlice::new(
        UserPtr::from_ptr(from.cast_mut().cast()),
        len.min(WRITE_MAX),
    );
    let mut line = KVec::new();
    let read = user.read_all(&mut line, GFP_KERNEL);
    match W::write(data, read.map(|()| line.as_slice())) {
        Ok(()) => isize::try_from(len).unwrap_or(isize::MAX),
        Err(error) => error.to_errno() as isize,
    }
}

struct Answering<F>(PhantomData<F>);

impl<F> Answering<F>
where
    F: Readable<Data = <F as Writable>::Data> + Writable,
{
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        write: Some(Self::write),
        ..Reading::<F>::OPERATIONS
    };

    /// # Safety
    ///
    /// Called only by debugfs, for a file that [`Reading::open`] opened.
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        from: *const c_char,
        len: usize,
        _: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: By the function's requirement the file is valid.
        let seq = unsafe { (*file).private_data }.cast::<bindings::seq_file>();
        // SAFETY: As above: it has a `seq_file`.
        let data = unsafe { (*seq).private };
        // SAFETY: By the requirement of `open`. debugfs writes only as long as the file has not
        // been removed, and removing it waits for who writes; the data goes after that.
        let data = unsafe { &*data.cast::<<F as Writable>::Data>() };

        take_line::<F>(data, from, len)
    }
}
