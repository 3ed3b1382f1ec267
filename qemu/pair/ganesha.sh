# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# In the guest b, beside qemu/pair/agent: NFS-Ganesha, from /share/ganesha.
# shellcheck disable=SC2034,SC2154,SC2317 # for and from the agent

# ganesha_server: exports /export over RDMA at port 20049, by NFS 3 and 4.0. The
# file system has a device, because Ganesha exports no tmpfs and its own file system in memory
# keeps no more than 2 MiB of a file.
ganesha_server() {
	modprobe rdma_ucm && mkdir -p /var/lib/nfs/ganesha /run/ganesha /run/rpcbind || return
	truncate -s 300M /tmp/export && busybox mke2fs -F /tmp/export && mkdir -p /export &&
		modprobe -a loop ext4 && mount -o loop /tmp/export /export || return
	pidof rpcbind >/dev/null || rpcbind -w || return
	cat >/tmp/ganesha.conf <<-END
		NFS_CORE_PARAM {
			NFS_Protocols = 3, 4, nfsrdma;
			NFS_RDMA_Port = 20049;
			NFS_RDMA_Protocol_Versions = 3, 4.0;
			allow_set_io_flusher_fail = true;
			Enable_NLM = false;
			Enable_RQUOTA = false;
			Plugins_Dir = "/share/ganesha/lib";
		}
		# Otherwise Ganesha's threads take on the user of each call, and uverbs then refuses
		# their writes, such as a Send of rxe.
		VFS { only_one_user = true; }
		NFSv4 { Graceless = true; RecoveryRoot = "/var/lib/nfs/ganesha"; }
		EXPORT {
			Export_Id = 1;
			Path = /export;
			Pseudo = /export;
			Protocols = 3, 4;
			Access_Type = RW;
			Squash = None;
			SecType = sys;
			FSAL { Name = VFS; }
		}
	END
	later ganesha env LD_LIBRARY_PATH=/share/ganesha/lib /share/ganesha/ganesha.nfsd -F \
		-f /tmp/ganesha.conf -L /tmp/ganesha.log -p /run/ganesha.pid
	# Ganesha listens only after everything else is initialized.
	wait_for 60 listens_rdma || ganesha_log
}
listens_rdma() { rdma resource show cm_id | grep -q 'state LISTEN.*20049'; }

# ganesha_runs: whether Ganesha still listens; if not, prints why.
ganesha_runs() { listens_rdma || ganesha_log; }
ganesha_log() {
	tail -n 40 /tmp/ganesha.log
	ended ganesha
	dmesg | tail -n 20
	return 1
}
