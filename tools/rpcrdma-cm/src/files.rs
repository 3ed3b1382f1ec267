// SPDX-License-Identifier: GPL-2.0

//! Reads the files of the module and of /proc, and explains why one cannot be read.

use std::{
    collections::BTreeMap,
    fs,
    io::{
        self,
        Read,
        Seek,
        Write, //
    },
    os::unix::fs::MetadataExt,
    path::{
        Path,
        PathBuf, //
    }, //
};

use crate::{
    check::Port,
    mount_report::Namespace, //
    parse::{
        mounts::{
            rdma_entries,
            remote_points,
            without_links,
            Entry, //
        },
        transports::{
            transport,
            Transport, //
        }, //
    }, //
};

/// The error is a sentence for the administrator.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The directories.
pub(crate) struct Files {
    pub(crate) debugfs: PathBuf,
    pub(crate) proc: PathBuf,
    pub(crate) sys: PathBuf,
    pub(crate) fstab: PathBuf,
}

impl Files {
    /// Reads a file of the module.
    pub(crate) fn module(&self, name: &str) -> Result<String> {
        self.bytes(name).map(text)
    }

    /// Reads a file of the module as octets.
    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.debugfs.join(name);
        fs::read(&path).map_err(|error| self.explain(&path, &error))
    }

    /// Reads a file that not every version of the module has. Returns `None` if it is missing.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<String>> {
        match fs::read(self.debugfs.join(name)) {
            Ok(octets) => Ok(Some(text(octets))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // An error here means that the whole module is missing.
                self.module("connections").map(|_| None)
            }
            Err(error) => Err(self.explain(&self.debugfs.join(name), &error)),
        }
    }

    /// Says why the module takes no commands, if it does not.
    pub(crate) fn takes_commands(&self) -> Result<()> {
        self.module("probe").map(|_| ())
    }

    /// Writes a line to the file `probe`, and reads the report.
    pub(crate) fn probe(&self, line: &str) -> Result<String> {
        let path = self.debugfs.join("probe");
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| self.explain(&path, &error))?;
        file.write_all(line.as_bytes()).map_err(|error| {
            let why = self.module("last_error").unwrap_or_default();
            match why.trim().strip_prefix("probe: ") {
                Some(why) => format!("the module refuses the probe: {why}"),
                None => format!("the module refuses the probe: {error}"),
            }
        })?;
        let mut report = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut report))
            .map_err(|error| self.explain(&path, &error))?;
        Ok(text(report))
    }

    /// Says in one line why a file of the module could not be opened or read, and what helps.
    fn explain(&self, path: &Path, error: &io::Error) -> String {
        let shown = path.display();
        match error.kind() {
            io::ErrorKind::NotFound if !self.debugfs.is_dir() => self.explain_missing(),
            io::ErrorKind::NotFound if path.ends_with("probe") => format!(
                "{shown}: the module takes no commands: modprobe -r rpcrdma_cm; modprobe rpcrdma_cm \
                 control=1"
            ),
            io::ErrorKind::NotFound => format!("{shown}: there is no such file"),
            io::ErrorKind::PermissionDenied if self.is_root() => format!(
                "{shown}: not permitted: this takes CAP_SYS_ADMIN in the initial user namespace, \
                 and no lockdown of the kernel"
            ),
            io::ErrorKind::PermissionDenied => {
                format!("{shown}: permission denied: the module's files are for root, try sudo")
            }
            io::ErrorKind::ResourceBusy => {
                format!("{shown}: the module is being loaded: try again")
            }
            _ => format!("{shown}: {error}"),
        }
    }

    /// Says in one line why the directory of the module is missing.
    fn explain_missing(&self) -> String {
        let directory = self.debugfs.display();
        let parent = self.debugfs.parent().unwrap_or(Path::new("/"));
        if !self.is_debugfs(parent) {
            return format!(
                "{directory}: debugfs is not mounted there: mount -t debugfs none {}",
                parent.display()
            );
        }
        let modules = fs::read_to_string(self.proc.join("modules")).unwrap_or_default();
        if modules
            .lines()
            .any(|line| line.split(' ').next() == Some("rpcrdma_cm"))
        {
            return format!("{directory}: the module rpcrdma_cm has made no files: see dmesg");
        }
        "the module rpcrdma_cm is not loaded: modprobe rpcrdma_cm".to_owned()
    }

    fn is_debugfs(&self, directory: &Path) -> bool {
        let mounts = fs::read_to_string(self.proc.join("self/mountinfo")).unwrap_or_default();
        mounts.lines().any(|line| {
            let point = line.split(' ').nth(4);
            let kind = line.split_once(" - ").map(|(_, system)| system);
            point.map(Path::new) == Some(directory)
                && kind.is_some_and(|system| system.starts_with("debugfs "))
        })
    }

    fn is_root(&self) -> bool {
        fs::metadata(self.proc.join("self")).is_ok_and(|own| own.uid() == 0)
    }

    /// Reads a file of /proc.
    pub(crate) fn read(&self, name: &str) -> Result<String> {
        let path = self.proc.join(name);
        fs::read(&path)
            .map(text)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The values of the sysctls of sunrpc, one `name = value` a line. Those that cannot be read are
    /// left out.
    pub(crate) fn sysctls(&self) -> String {
        let mut lines = Vec::new();
        for directory in ["sys/sunrpc", "sys/sunrpc/svc_rdma"] {
            for entry in entries(self.proc.join(directory)) {
                if let Ok(value) = fs::read_to_string(entry.path()) {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    lines.push(format!("{directory}/{name} = {}", value.trim()));
                }
            }
        }
        lines.sort();
        lines.join("\n")
    }

    /// The network interfaces of the RDMA devices.
    pub(crate) fn rdma_interfaces(&self) -> Vec<String> {
        let ports = self.rdma_ports();
        let mut names: Vec<String> = ports.into_iter().flat_map(|port| port.interfaces).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The ports of the RDMA devices, by their names.
    pub(crate) fn rdma_ports(&self) -> Vec<Port> {
        let read = |path: PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().to_owned()
        };
        // `4: ACTIVE`, `1: CA`.
        let word = |path: PathBuf| {
            let text = read(path);
            match text.split_once(": ") {
                Some((_, word)) => word.to_owned(),
                None => text,
            }
        };
        let mut ports = Vec::new();
        for device in entries(self.sys.join("class/infiniband")) {
            // The interfaces of the same function of PCI, and the port that each one has there.
            let children: Vec<(String, Option<u64>)> = entries(device.path().join("device/net"))
                .map(|child| {
                    let name = child.file_name().to_string_lossy().into_owned();
                    (name, read(child.path().join("dev_port")).parse().ok())
                })
                .collect();
            let is_single = entries(device.path().join("ports")).count() == 1;
            for port in entries(device.path().join("ports")) {
                let path = port.path();
                let Ok(number) = port.file_name().to_string_lossy().parse() else {
                    continue;
                };
                let mut interfaces: Vec<String> = entries(path.join("gid_attrs/ndevs"))
                    .map(|entry| read(entry.path()))
                    .filter(|name| !name.is_empty() && !name.starts_with('-'))
                    .collect();
                // InfiniBand has none there, and older kernels have none of iWARP there. IPoIB and
                // the drivers of adapters with several ports count from 0. With one port, others
                // have the number of the adapter's port.
                if interfaces.is_empty() {
                    let is_own = |of: Option<u64>| {
                        is_single || of.is_none_or(|of| of.checked_add(1) == Some(number))
                    };
                    let own = children.iter().filter(|(_, of)| is_own(*of));
                    interfaces.extend(own.map(|(name, _)| name.clone()));
                }
                interfaces.sort();
                interfaces.dedup();
                ports.push(Port {
                    device: device.file_name().to_string_lossy().into_owned(),
                    number,
                    state: word(path.join("state")),
                    is_iwarp: word(device.path().join("node_type")) == "RNIC",
                    is_ethernet: read(path.join("link_layer")) == "Ethernet",
                    interfaces,
                });
            }
        }
        ports.sort_by(|one, other| (&one.device, one.number).cmp(&(&other.device, other.number)));
        ports
    }

    /// The index of a network interface.
    pub(crate) fn interface_index(&self, name: &str) -> Option<u32> {
        let path = self.sys.join("class/net").join(name).join("ifindex");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// The network interface of that index.
    pub(crate) fn interface_of(&self, index: u32) -> Option<String> {
        entries(self.sys.join("class/net"))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .find(|name| self.interface_index(name) == Some(index))
    }

    /// The drivers of the network interfaces.
    pub(crate) fn network_drivers(&self) -> Vec<String> {
        entries(self.sys.join("class/net"))
            .filter_map(|entry| {
                let driver = fs::read_link(entry.path().join("device/driver")).ok()?;
                Some(driver.file_name()?.to_string_lossy().into_owned())
            })
            .collect()
    }

    /// Whether that module is loaded, or built in with parameters or a version.
    pub(crate) fn is_loaded(&self, module: &str) -> bool {
        self.sys.join("module").join(module).is_dir()
    }

    /// The RDMA transports of the kernel's RPC client in this network namespace. Empty where the
    /// kernel does not show them. A transport that ends meanwhile is left out.
    pub(crate) fn transports(&self) -> Vec<Transport> {
        let is_rdma = |name: &std::ffi::OsStr| {
            let mut words = name.to_str().unwrap_or_default().split('-');
            words.next() == Some("xprt") && words.any(|word| word.starts_with("rdma"))
        };
        let read = |path: PathBuf| fs::read_to_string(path).ok();
        entries(self.sys.join("kernel/sunrpc/xprt-switches"))
            .flat_map(|switch| entries(switch.path()))
            .filter(|entry| is_rdma(&entry.file_name()))
            .filter_map(|entry| {
                let path = entry.path();
                let switch = path.with_file_name("xprt_switch_info");
                Some(transport(
                    &read(path.join("dstaddr"))?,
                    &read(path.join("xprt_info"))?,
                    &read(path.join("xprt_state"))?,
                    &read(switch).unwrap_or_default(),
                ))
            })
            .collect()
    }

    /// The mounts that this process sees.
    pub(crate) fn own_namespace(&self) -> Result<Namespace> {
        let mountinfo = self.read("self/mountinfo")?;
        Ok(Namespace {
            of: None,
            fstab: self.fstab_entries(&mountinfo),
            mountinfo,
            mountstats: self.read("self/mountstats")?,
        })
    }

    /// The lines of fstab that ask for RDMA. mount and systemd follow the links of a mount point, and
    /// `mountinfo` has the path without them. Without that file, no mount is expected to use RDMA.
    fn fstab_entries(&self, mountinfo: &str) -> Vec<Entry> {
        let fstab = fs::read(&self.fstab).map(text).unwrap_or_default();
        let remote = remote_points(mountinfo);
        let mut entries = rdma_entries(&fstab);
        for entry in &mut entries {
            let link = |path: &Path| fs::read_link(path).ok();
            if let Some(point) = without_links(&entry.mount_point, &remote, link) {
                entry.mount_point = point;
            }
        }
        entries
    }

    /// The mounts of all other mount namespaces, each as its first process sees them, and the
    /// number of processes that this one may not look at. A process that ends meanwhile is left
    /// out.
    pub(crate) fn other_namespaces(&self) -> Result<(Vec<Namespace>, usize)> {
        let own = namespace_of(&self.proc.join("self")).ok();
        let mut denied = 0_usize;
        let mut processes: BTreeMap<u64, PathBuf> = BTreeMap::new();
        let entries = fs::read_dir(&self.proc)
            .map_err(|error| format!("{}: {error}", self.proc.display()))?;
        for entry in entries.flatten() {
            if let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            {
                processes.insert(pid, entry.path());
            }
        }
        let mut seen = BTreeMap::new();
        for (pid, path) in processes {
            let number = match namespace_of(&path) {
                Ok(number) => number,
                Err(error) => {
                    denied += usize::from(error.kind() == io::ErrorKind::PermissionDenied);
                    continue;
                }
            };
            if own == Some(number) || seen.contains_key(&number) {
                continue;
            }
            let read = |name: &str| fs::read(path.join(name));
            match (read("mountinfo"), read("mountstats")) {
                (Ok(mountinfo), Ok(mountstats)) => {
                    seen.insert(
                        number,
                        Namespace {
                            of: Some((number, pid)),
                            mountinfo: text(mountinfo),
                            mountstats: text(mountstats),
                            fstab: Vec::new(),
                        },
                    );
                }
                (Err(error), _) | (_, Err(error)) => {
                    denied += usize::from(error.kind() == io::ErrorKind::PermissionDenied);
                }
            }
        }
        Ok((seen.into_values().collect(), denied))
    }
}

/// The octets of a file as text, whatever they are.
fn text(octets: Vec<u8>) -> String {
    String::from_utf8_lossy(&octets).into_owned()
}

/// What is in a directory. Empty if it cannot be read.
fn entries(path: PathBuf) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(path).into_iter().flatten().flatten()
}

/// The number of a process's mount namespace: the link reads `mnt:[4026531840]`.
fn namespace_of(process: &Path) -> io::Result<u64> {
    let link = fs::read_link(process.join("ns/mnt"))?;
    link.to_str()
        .and_then(|link| link.strip_prefix("mnt:[")?.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Replaces a file as a whole, or leaves it unchanged: a reader sees the old text or the new one. A
/// device, a pipe or the like stays what it is, and gets the text. A file behind a link is written
/// in place, not replaced as a whole. A path of the standard output means that, as it is open.
pub(crate) fn replace(path: &Path, text: &str) -> Result<()> {
    // Opening it again would write from the start of a file to which the shell appends.
    let is_stdout = match (fs::metadata(path), fs::metadata("/proc/self/fd/1")) {
        (Ok(found), Ok(stdout)) => (found.dev(), found.ino()) == (stdout.dev(), stdout.ino()),
        _ => false,
    };
    let is_other = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
    let written = if is_stdout {
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
    } else if is_other {
        // The kernel follows a link, because it refuses that of another user in a directory such as
        // /tmp (fs.protected_symlinks).
        let file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    } else {
        let name = path
            .file_name()
            .ok_or_else(|| format!("{}: this is not the name of a file", path.display()))?;
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}", std::process::id()));
        replace_by(&path.with_file_name(temporary), path, text)
    };
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a temporary file, and gives it that name.
fn replace_by(temporary: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(temporary)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(temporary);
    }
    written
}
