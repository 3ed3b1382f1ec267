// SPDX-License-Identifier: GPL-2.0

//! Files and directories of debugfs. An open file keeps the module from being unloaded.
//!
//! The files of the kernel crate do not: their operations have no owner. The module can then be
//! unloaded while a file is open, and closing the file uses freed memory.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h)

use core::{
    fmt,
    marker::PhantomData,
    ptr, //
};

use kernel::{
    bindings,
    error::{
        from_err_ptr,
        from_result, //
    },
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

use crate::{
    base::{
        unload::Hold,
        wait::MayWait, //
    },
    bindings::flush_events,
    kernel_series::this_module, //
};

/// Checks that the opener of a file is allowed to open it.
///
/// The mode alone does not decide: the files show the connections of all network namespaces, and
/// commands act in the writer's. So the opener needs `CAP_SYS_ADMIN` in the initial user namespace.
/// Neither root without capabilities nor root of another user namespace has it.
///
/// Fails with `EPERM`, and with `EBUSY` until the module's init has succeeded: if init fails, the
/// module is unloaded even while a file is open.
fn may_open() -> Result {
    // SAFETY: No requirement: the function only concerns the current task.
    if !unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as c_int) } {
        return Err(EPERM);
    }
    // SAFETY: The pointer is to this module, which is loaded as long as its code runs.
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
    /// Fails only if `out` fails.
    fn show(data: &Self::Data, out: &mut Output) -> fmt::Result;

    /// Returns the probable length of the content in bytes. So much is allocated at first, so that
    /// a long content is not reallocated again and again.
    fn room(_data: &Self::Data) -> usize {
        0
    }
}

/// Declares files that can be read. Each shows its data by a function.
macro_rules! readable {
    ($($(#[$doc:meta])* $name:ident($data:ty) => $show:expr;)*) => {
        $(
            $(#[$doc])*
            struct $name;

            impl $crate::debugfs::Readable for $name {
                type Data = $data;

                fn show(data: &$data, out: &mut $crate::debugfs::Output) -> core::fmt::Result {
                    let show: fn(&$data, &mut $crate::debugfs::Output) -> _ = $show;
                    show(data, out)
                }
            }
        )*
    };
}
pub(crate) use readable;

/// A file that takes lines.
pub(crate) trait Writable: 'static {
    type Data: Send + Sync + 'static;

    /// The length in bytes of the longest line that the file accepts.
    const LINE_MAX: usize;

    /// Acts on one write. `line` is its content, up to `LINE_MAX + 1` bytes, or the error if it
    /// could not be copied from user space. Called in the writer's process context, may sleep.
    fn write(data: &Self::Data, line: Result<&[u8]>, may_wait: &MayWait) -> Result;
}

/// The content of a file at one moment.
pub(crate) struct Output(KVVec<u8>);

impl Output {
    /// Adds bytes. Fails only if there is no memory for them.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0
            .extend_from_slice(bytes, GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

/// A file or directory of debugfs. It keeps its parent directory.
///
/// Dropping it removes the file or directory, and waits for operations that are under way. So it
/// may sleep.
///
/// # Invariants
///
/// `dentry` is a dentry of debugfs that this object owns.
struct Node {
    dentry: *mut bindings::dentry,
    _parent: Option<Arc<Node>>,
}

// SAFETY: A dentry may be used and removed by any task.
unsafe impl Send for Node {}
// SAFETY: `&Node` only gives access to the pointer. The functions of debugfs that take it do their
// own locking.
unsafe impl Sync for Node {}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this object owns the dentry, and nothing uses it
        // afterwards.
        unsafe { bindings::debugfs_remove(self.dentry) };
    }
}

/// A directory. It is removed when this and everything in it has been dropped.
pub(crate) struct Dir {
    node: Arc<Node>,
    hold: Hold,
}

impl Dir {
    /// Creates a directory in the root of debugfs; may sleep. Its files get holds of the module.
    ///
    /// Fails with `EEXIST` if the name is taken, with `EPERM` if debugfs is disabled, and with
    /// `ENOMEM`.
    pub(crate) fn new(name: &CStr, hold: &Hold) -> Result<Self> {
        Self::new_in(None, name, hold)
    }

    /// Creates a directory in this one; may sleep.
    ///
    /// Fails as [`Self::new`] does.
    pub(crate) fn dir(&self, name: &CStr) -> Result<Self> {
        Self::new_in(Some(self.node.clone()), name, &self.hold)
    }

    fn new_in(parent: Option<Arc<Node>>, name: &CStr, hold: &Hold) -> Result<Self> {
        let dentry = parent.as_ref().map_or(ptr::null_mut(), |node| node.dentry);
        // SAFETY: The name is valid during the call, which copies it. The parent is NULL, or a
        // directory that `parent` keeps.
        let dentry = unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), dentry) };

        // INVARIANT: The function returns a new dentry or an error pointer, which `from_err_ptr`
        // refuses.
        let node = Node {
            dentry: from_err_ptr(dentry)?,
            _parent: parent,
        };
        Ok(Self {
            node: Arc::new(node, GFP_KERNEL)?,
            hold: hold.clone(),
        })
    }

    /// Creates a file that only root may read; may sleep. Fails with `EEXIST` if the name is taken,
    /// with `EPERM` if debugfs is disabled, and with `ENOMEM`.
    pub(crate) fn readable<R: Readable>(
        &self,
        name: &CStr,
        data: Arc<R::Data>,
    ) -> Result<File<R::Data>> {
        // SAFETY: The operations of `Reading<R>` expect an `R::Data`, which `data` points to.
        unsafe { self.file(name, 0o400, data, &Reading::<R>::OPERATIONS) }
    }

    /// Creates a file that only root may write to; may sleep. Fails as [`Self::readable`] does.
    pub(crate) fn writable<W: Writable>(
        &self,
        name: &CStr,
        data: Arc<W::Data>,
    ) -> Result<File<W::Data>> {
        // SAFETY: The operations of `Writing<W>` expect a `W::Data`, which `data` points to.
        unsafe { self.file(name, 0o200, data, &Writing::<W>::OPERATIONS) }
    }

    /// Creates a file that only root may write to, and whose result can then be read; may sleep.
    /// Fails as [`Self::readable`] does.
    pub(crate) fn answering<F>(
        &self,
        name: &CStr,
        data: Arc<<F as Writable>::Data>,
    ) -> Result<File<<F as Writable>::Data>>
    where
        F: Readable<Data = <F as Writable>::Data> + Writable,
    {
        // SAFETY: The operations of `Answering<F>` expect an `F::Data`, which `data` points to.
        unsafe { self.file(name, 0o600, data, &Answering::<F>::OPERATIONS) }
    }

    /// Creates a file; may sleep.
    ///
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
        // SAFETY: The name is valid during the call, which copies it. The new file keeps the
        // directory. The operations are in the module, which the hold of the new `File` keeps. The
        // `File` drops `data` only after it has removed the file.
        let dentry = unsafe {
            bindings::debugfs_create_file_full(
                name.as_char_ptr(),
                mode,
                self.node.dentry,
                Arc::as_ptr(&data).cast_mut().cast(),
                ptr::null(),
                operations,
            )
        };

        Ok(File {
            // INVARIANT: The function returns a new dentry or an error pointer, which
            // `from_err_ptr` refuses.
            _node: Node {
                dentry: from_err_ptr(dentry)?,
                _parent: Some(self.node.clone()),
            },
            _data: data,
            _hold: self.hold.clone(),
        })
    }
}

/// A file. Its fields are dropped in declaration order: the file is removed before its data is
/// dropped.
pub(crate) struct File<T> {
    _node: Node,
    _data: Arc<T>,
    // The operations of the file are code of the module, also if this is never dropped.
    _hold: Hold,
}

/// An open file that can be read.
///
/// # Invariants
///
/// `data` is the private data of the file's inode.
#[pin_data]
struct OpenFile {
    data: *mut c_void,
    /// The content that reads return; [`None`] if the next read is to take a new snapshot.
    #[pin]
    snapshot: Mutex<Option<Output>>,
}

impl OpenFile {
    /// Creates the private data of `file`; may sleep. `snapshot` returns its first snapshot, if
    /// any.
    ///
    /// Fails as [`may_open`] and `snapshot` do, and with `ENOMEM`.
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
        // INVARIANT: `data` was read from the inode's private data.
        let open = KBox::pin_init(
            pin_init!(Self {
                data,
                snapshot <- new_mutex!(snapshot, "OpenFile::snapshot"),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: By the function's requirement the file is valid. It is being opened, so no other
        // operation uses it.
        unsafe { (*file).private_data = open.into_foreign() };
        Ok(())
    }

    /// Returns the private data of `file`.
    ///
    /// # Safety
    ///
    /// [`Self::attach`] must have succeeded for `file`, which must not be released before `'a`
    /// ends.
    unsafe fn of<'a>(file: *mut bindings::file) -> Pin<&'a Self> {
        // SAFETY: By the function's requirement the file is valid.
        let open = unsafe { (*file).private_data };
        // SAFETY: By the function's requirement `attach` stored the pointer, and `detach` is not
        // called before `'a` ends, because that is called when the file is released.
        unsafe { Pin::<KBox<Self>>::borrow(open) }
    }

    /// Drops the private data of `file`.
    ///
    /// # Safety
    ///
    /// [`Self::attach`] must have succeeded for `file`, which is being released.
    unsafe fn detach(file: *mut bindings::file) {
        // SAFETY: By the function's requirement the file is valid.
        let open = unsafe { (*file).private_data };
        // SAFETY: By the function's requirement `attach` stored the pointer. No operation on the
        // file is under way when it is released, so nothing borrows it.
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

    /// Takes a snapshot; may sleep.
    ///
    /// Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `data` must be the private data of the inode of an operation of debugfs that is under way,
    /// and point to an `R::Data`.
    unsafe fn snapshot(data: *mut c_void) -> Result<Output> {
        // SAFETY: By the function's requirement `data` points to an `R::Data`. That is dropped
        // after the file has been removed, and removing the file waits for this operation.
        let data = unsafe { &*data.cast::<R::Data>() };

        // Probes note events, and a work reports them. Wait for it, so that the snapshot has all
        // events of calls that have returned.
        flush_events();
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
        // SAFETY: `attach` passes the private data of `inode`, which debugfs is opening. By the
        // function's requirement that points to an `R::Data`.
        let now = |data| unsafe { Self::snapshot(data) }.map(Some);
        // SAFETY: By the function's requirement debugfs is opening `inode` and `file`.
        from_result(|| unsafe { OpenFile::attach(inode, file, now) }.map(|()| 0))
    }

    /// Returns the snapshot of an open file, and takes one if there is none; may sleep.
    ///
    /// # Safety
    ///
    /// The same as of [`Self::snapshot`].
    unsafe fn current(snapshot: &mut Option<Output>, data: *mut c_void) -> Result<&mut Output> {
        Ok(match snapshot {
            Some(snapshot) => snapshot,
            // SAFETY: The requirement is that of this function.
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
        // SAFETY: By the function's requirement `open` called `attach`, and the file is not
        // released during a read.
        let open = unsafe { OpenFile::of(file) };
        let mut snapshot = open.snapshot.lock();
        from_result(|| {
            // SAFETY: By the type invariant of `OpenFile`, `data` is the private data of the inode
            // that is being read. By the function's requirement that points to an `R::Data`.
            let bytes = &unsafe { Self::current(&mut snapshot, open.data) }?.0;
            let (from, available) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: `at` is valid during the call, and `from` points to that many bytes. `to` is
            // a pointer to user space, which the function checks.
            Ok(unsafe { bindings::simple_read_from_buffer(to.cast(), len, at, from, available) })
        })
    }

    /// Moves the position. A move to the beginning takes a new snapshot.
    ///
    /// # Safety
    ///
    /// The same as of [`Self::read`].
    unsafe extern "C" fn llseek(
        file: *mut bindings::file,
        offset: bindings::loff_t,
        whence: c_int,
    ) -> bindings::loff_t {
        // SAFETY: By the function's requirement `open` called `attach`, and the file is not
        // released during a seek.
        let open = unsafe { OpenFile::of(file) };
        let mut snapshot = open.snapshot.lock();
        from_result(|| {
            // SAFETY: By the type invariant of `OpenFile`, `data` is the private data of the inode
            // that is being moved in. By the function's requirement that points to an `R::Data`.
            let len = unsafe { Self::current(&mut snapshot, open.data) }?.0.len();
            let len = bindings::loff_t::try_from(len).unwrap_or(bindings::loff_t::MAX);
            // SAFETY: By the function's requirement the file is valid.
            let at = unsafe { bindings::fixed_size_llseek(file, offset, whence, len) };

            // A program that only asks for the position does not rewind the file.
            let asks = offset == 0 && whence == bindings::SEEK_CUR as c_int;
            if at == 0 && !asks {
                *snapshot = None;
                // SAFETY: The same as for the call above.
                unsafe { Self::current(&mut snapshot, open.data) }?;
            }
            Ok(at)
        })
    }

    /// # Safety
    ///
    /// The same as of [`Self::read`]. The file must be being released.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the function's requirement `open` called `attach`, and the file is being
        // released.
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
        from_result(|| {
            may_open()?;
            // SAFETY: By the function's requirement the inode is valid.
            let data = unsafe { (*inode).i_private };
            // SAFETY: By the function's requirement the file is valid. It is being opened, so no
            // other operation uses it.
            unsafe { (*file).private_data = data };
            Ok(0)
        })
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
        // SAFETY: `open` stored the private data of the inode, which points to a `W::Data`. That is
        // dropped after the file has been removed, and removing the file waits for this operation.
        let data = unsafe { &*data.cast::<W::Data>() };

        take_line::<W>(data, from, len)
    }
}

/// Copies a write from user space and hands it to `W`; may sleep. Returns the number of bytes
/// written, or a negative errno.
fn take_line<W: Writable>(data: &W::Data, from: *const c_char, len: usize) -> isize {
    let user = UserSlice::new(
        UserPtr::from_ptr(from.cast_mut().cast()),
        // One byte more than the longest line, so that `W` sees that a line is too long.
        len.min(W::LINE_MAX + 1),
    );
    let mut line = KVec::new();
    let read = user.read_all(&mut line, GFP_KERNEL);
    // SAFETY: This is a write to a file. No completion, and no handler of rdma_cm, waits for a
    // writer: the files that they may remove can only be read.
    let may_wait = unsafe { MayWait::new() };
    from_result(|| {
        W::write(data, read.map(|()| line.as_slice()), &may_wait)?;
        Ok(isize::try_from(len).unwrap_or(isize::MAX))
    })
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

    /// Takes no snapshot: the first read does, which usually comes after a write.
    ///
    /// # Safety
    ///
    /// The same as of [`Reading::open`].
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the function's requirement debugfs is opening `inode` and `file`.
        from_result(|| unsafe { OpenFile::attach(inode, file, |_| Ok(None)) }.map(|()| 0))
    }

    /// Hands a line to `F`. The next read takes a new snapshot, and starts at its beginning.
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
        // SAFETY: By the function's requirement `open` called `attach`, and the file is not
        // released during a write.
        let open = unsafe { OpenFile::of(file) };
        // SAFETY: By the type invariant of `OpenFile`, `data` is the private data of the inode. By
        // the requirement of `open` that points to an `F::Data`. It is dropped after the file has
        // been removed, and removing the file waits for this operation.
        let data = unsafe { &*open.data.cast::<<F as Writable>::Data>() };

        let written = take_line::<F>(data, from, len);
        if written >= 0 {
            *open.snapshot.lock() = None;
            // SAFETY: debugfs passes a position that is valid during the call.
            unsafe { *at = 0 };
        }
        written
    }
}
