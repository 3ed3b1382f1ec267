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
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    types::ForeignOwnable,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use crate::series::this_module;

/// Checks that the opener of a file is allowed to open it.
///
/// The mode alone does not decide: the files show the connections of all network namespaces, and
/// commands act in the writer's. So the opener must be allowed to enter any namespace, which
/// neither root without capabilities nor root of a user namespace is.
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

/// A file that shows a snapshot of its data.
///
/// An open file shows one moment, however it is read: the snapshot is taken when the file is opened
/// or rewound to its beginning.
pub(crate) trait Readable: 'static {
    type Data: Send + Sync + 'static;

    /// Writes the file's whole content; process context, may sleep.
    ///
    /// Fails only where `out` does.
    fn show(data: &Self::Data, out: &mut Output) -> fmt::Result;

    /// Returns how many octets that is probably going to be: room to begin with, so that a long
    /// content is not copied again and again.
    fn room(_data: &Self::Data) -> usize {
        0
    }
}

/// A file that takes lines.
pub(crate) trait Writable: 'static {
    type Data: Send + Sync + 'static;

    /// How many octets the longest line has that it accepts.
    const LINE_MAX: usize;

    /// Takes one write as a whole, or why that could not be read; in the writer's process
    /// context, may sleep.
    fn write(data: &Self::Data, line: Result<&[u8]>) -> Result;
}

/// The content of a file, as one snapshot shows it.
pub(crate) struct Output(KVVec<u8>);

impl Output {
    /// Adds octets; fails only where there is no memory for them.
    pub(crate) fn write_octets(&mut self, octets: &[u8]) -> fmt::Result {
        self.0
            .extend_from_slice(octets, GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_octets(s.as_bytes())
    }
}

/// Something in debugfs that goes when this is dropped, and before its parent.
///
/// Dropping it waits for operations that are under way, so may sleep.
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
    pub(crate) fn readable<R: Readable>(
        &self,
        name: &CStr,
        data: Arc<R::Data>,
    ) -> Result<File<R::Data>> {
        // SAFETY: The operations take what `data` points to.
        unsafe { self.file(name, 0o400, data, &Reading::<R>::OPERATIONS) }
    }

    /// Makes a file that only root may write to; may sleep.
    pub(crate) fn writable<W: Writable>(
        &self,
        name: &CStr,
        data: Arc<W::Data>,
    ) -> Result<File<W::Data>> {
        // SAFETY: The operations take what `data` points to.
        unsafe { self.file(name, 0o200, data, &Writing::<W>::OPERATIONS) }
    }

    /// Makes a file that only root may write to, and then read what came of it; may sleep.
    pub(crate) fn answering<F>(
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
pub(crate) struct File<T> {
    _node: Node,
    _data: Arc<T>,
}

/// An open file that can be read.
///
/// # Invariants
///
/// `data` is the private data of the file's inode.
#[pin_data]
struct OpenFile {
    data: *mut c_void,
    /// [`None`] until the next read takes one.
    #[pin]
    snapshot: Mutex<Option<Output>>,
}

impl OpenFile {
    /// Makes the private data of `file`.
    ///
    /// # Safety
    ///
    /// `inode` and `file` must be those that debugfs opens.
    unsafe fn attach(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
        snapshot: impl FnOnce(*mut c_void) -> Result<Option<Output>>,
    ) -> Result {
        may_open()?;
        // SAFETY: By the function's requirement the inode is valid.
        let data = unsafe { (*inode).i_private };
        let snapshot = snapshot(data)?;
        // INVARIANT: That is where `data` is from.
        let open = KBox::pin_init(
            pin_init!(Self {
                data,
                snapshot <- new_mutex!(snapshot, "OpenFile::snapshot"),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: By the function's requirement the file is valid, and nobody else uses it yet.
        unsafe { (*file).private_data = open.into_foreign() };
        Ok(())
    }

    /// # Safety
    ///
    /// [`Self::attach`] must have succeeded for `file`, which must not be released before `'a`
    /// ends.
    unsafe fn of<'a>(file: *mut bindings::file) -> Pin<&'a Self> {
        // SAFETY: By the function's requirement the file is valid.
        let open = unsafe { (*file).private_data };
        // SAFETY: By the function's requirement `attach` has put it there, and only `detach` takes
        // it away, when the file is released.
        unsafe { Pin::<KBox<Self>>::borrow(open) }
    }

    /// # Safety
    ///
    /// [`Self::attach`] must have succeeded for `file`, which is released now.
    unsafe fn detach(file: *mut bindings::file) {
        // SAFETY: By the function's requirement the file is valid.
        let open = unsafe { (*file).private_data };
        // SAFETY: By the function's requirement `attach` has put it there, and nobody borrows it
        // any more, since no operation on the file is under way.
        drop(unsafe { Pin::<KBox<Self>>::from_foreign(open) });
    }
}

struct Reading<R>(PhantomData<R>);

impl<R: Readable> Reading<R> {
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        owner: this_module(),
        open: Some(Self::open),
        read: Some(Self::read),
        llseek: Some(Self::llseek),
        release: Some(Self::release),
        ..pin_init::zeroed()
    };

    /// Takes a snapshot.
    ///
    /// Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `data` must be the private data of an inode that debugfs opens or has opened for an
    /// operation that is under way, and point to an `R::Data`.
    unsafe fn snapshot(data: *mut c_void) -> Result<Output> {
        // SAFETY: By the function's requirement it points to one. The data is dropped after the
        // file has been removed, and removing the file waits for this operation.
        let data = unsafe { &*data.cast::<R::Data>() };

        let mut out = Output(KVVec::with_capacity(R::room(data), GFP_KERNEL)?);
        match R::show(data, &mut out) {
            Ok(()) => Ok(out),
            Err(fmt::Error) => Err(ENOMEM),
        }
    }

    /// # Safety
    ///
    /// Called only by debugfs, for a file whose inode's private data points to an `R::Data`.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the function's requirement, this is the inode that debugfs opens.
        let now = |data| unsafe { Self::snapshot(data) }.map(Some);
        // SAFETY: By the function's requirement.
        match unsafe { OpenFile::attach(inode, file, now) } {
            Ok(()) => 0,
            Err(error) => error.to_errno(),
        }
    }

    /// Returns the snapshot of an open file, and takes one if there is none.
    ///
    /// # Safety
    ///
    /// As that of [`Self::snapshot`], for `data`.
    unsafe fn current(snapshot: &mut Option<Output>, data: *mut c_void) -> Result<&mut Output> {
        Ok(match snapshot {
            Some(snapshot) => snapshot,
            // SAFETY: By the function's requirement.
            none => none.insert(unsafe { Self::snapshot(data) }?),
        })
    }

    /// # Safety
    ///
    /// Called only by debugfs, for a file that [`Self::open`] or [`Answering::open`] opened.
    unsafe extern "C" fn read(
        file: *mut bindings::file,
        to: *mut c_char,
        len: usize,
        at: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: By the function's requirement, and the file is not released during a read.
        let open = unsafe { OpenFile::of(file) };
        let mut snapshot = open.snapshot.lock();
        // SAFETY: By the type invariant of `OpenFile` it is the inode's, which this read is of.
        let octets = match unsafe { Self::current(&mut snapshot, open.data) } {
            Ok(snapshot) => snapshot.0.as_slice(),
            Err(error) => return error.to_errno() as isize,
        };
        // SAFETY: The position is valid for this call, and so many octets are there; `to` is the
        // reader's, which the function checks.
        unsafe {
            bindings::simple_read_from_buffer(
                to.cast(),
                len,
                at,
                octets.as_ptr().cast(),
                octets.len(),
            )
        }
    }

    /// # Safety
    ///
    /// As that of [`Self::read`].
    unsafe extern "C" fn llseek(
        file: *mut bindings::file,
        offset: bindings::loff_t,
        whence: c_int,
    ) -> bindings::loff_t {
        // SAFETY: By the function's requirement, and the file is not released during a seek.
        let open = unsafe { OpenFile::of(file) };
        let mut snapshot = open.snapshot.lock();
        // SAFETY: By the type invariant of `OpenFile` it is the inode's, which this seek is of.
        let len = match unsafe { Self::current(&mut snapshot, open.data) } {
            Ok(snapshot) => snapshot.0.len(),
            Err(error) => return error.to_errno().into(),
        };
        let len = bindings::loff_t::try_from(len).unwrap_or(bindings::loff_t::MAX);
        // SAFETY: By the function's requirement the file is valid.
        let at = unsafe { bindings::fixed_size_llseek(file, offset, whence, len) };

        // Asking for the position is no rewinding.
        let asks = offset == 0 && whence == bindings::SEEK_CUR as c_int;
        if at == 0 && !asks {
            *snapshot = None;
            // SAFETY: As above.
            if let Err(error) = unsafe { Self::current(&mut snapshot, open.data) } {
                return error.to_errno().into();
            }
        }
        at
    }

    /// # Safety
    ///
    /// As that of [`Self::read`]; the file is released.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the function's requirement.
        unsafe { OpenFile::detach(file) };
        0
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
        // been removed, and removing it waits for writers; the data goes after that.
        let data = unsafe { &*data.cast::<W::Data>() };

        take_line::<W>(data, from, len)
    }
}

/// Hands what somebody writes to `W`.
fn take_line<W: Writable>(data: &W::Data, from: *const c_char, len: usize) -> isize {
    let user = UserSlice::new(
        UserPtr::from_ptr(from.cast_mut().cast()),
        // One more than the longest line, so that `W` sees when a line is too long.
        len.min(W::LINE_MAX + 1),
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
        open: Some(Self::open),
        write: Some(Self::write),
        ..Reading::<F>::OPERATIONS
    };

    /// Leaves the snapshot to the first read: it is of interest after a write.
    ///
    /// # Safety
    ///
    /// As that of [`Reading::open`].
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the function's requirement.
        match unsafe { OpenFile::attach(inode, file, |_| Ok(None)) } {
            Ok(()) => 0,
            Err(error) => error.to_errno(),
        }
    }

    /// Takes a line, after which the file is read from its beginning.
    ///
    /// # Safety
    ///
    /// Called only by debugfs, for a file that [`Self::open`] opened.
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        from: *const c_char,
        len: usize,
        at: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: By the function's requirement, and the file is not released during a write.
        let open = unsafe { OpenFile::of(file) };
        // SAFETY: By the requirement of `open` it is one. debugfs writes only as long as the file
        // has not been removed, and removing it waits for the writer; the data is dropped after
        // that.
        let data = unsafe { &*open.data.cast::<<F as Writable>::Data>() };

        let written = take_line::<F>(data, from, len);
        if written >= 0 {
            *open.snapshot.lock() = None;
            // SAFETY: The position is valid for this call.
            unsafe { *at = 0 };
        }
        written
    }
}
