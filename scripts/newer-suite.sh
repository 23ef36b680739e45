# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced (after lib.sh): Debian's stable suite and its backports, in a chroot in the
# cache, for kernels that the machine's own suites do not have. They come from where
# the machine's apt gets Debian, by the machine's apt: its proxies and its keyring.

newer=$cache/newer
newer_root=$newer/root

# newer_apt TOOL ARGS... - apt-get or apt-cache, for those suites and that chroot.
newer_apt() {
	local tool=$1
	shift
	"$tool" -o Dir::Etc::sourcelist="$newer/suites.sources" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o Dir::State="$newer" -o Dir::State::status="$newer_root/var/lib/dpkg/status" \
		-o Dir::Cache="$newer" -o Dir::Cache::archives="$newer_root/var/cache/apt/archives" \
		-o Dir::Log="$newer" -o APT::Sandbox::User=root "$@"
}

# The mirror of the machine's own release, and the keyring that its entry names.
newer_mirror() {
	local entry
	read -r newer_uri entry < <(apt-get indextargets \
		--format '$(REPO_URI) $(SOURCESENTRY)' 'Created-By: Packages' 'Component: main' \
		'Origin: Debian' 'Label: Debian' 2>/dev/null)
	[ -n "${newer_uri:-}" ] || die "no entry of apt's sources gives Debian's main; run apt-get update"
	newer_keyring=$(grep -ioP '(^signed-by:\s*|\bsigned-by=)\K/[^],\s]+' "${entry%:*}" | head -n 1)
	newer_keyring=${newer_keyring:-/usr/share/keyrings/debian-archive-keyring.gpg}
}

newer_sources() {
	cat >"$newer/suites.sources" <<-END
		Types: deb
		URIs: $newer_uri
		Suites: $*
		Components: main
		Signed-By: $newer_keyring
	END
	newer_apt apt-get update -qq >&2
}

# The lists of the two suites, which go by the codename: a mirror may be behind with
# what it calls stable-backports.
newer_update() {
	local codename
	newer_mirror
	mkdir -p "$newer/lists/partial" "$newer_root"/var/{lib/dpkg,cache/apt/archives/partial}
	touch "$newer_root/var/lib/dpkg/status"
	newer_sources stable || return
	codename=$(newer_apt apt-get indextargets --format '$(CODENAME)' 'Created-By: Packages')
	newer_sources "$codename" "$codename-backports"
}

# The chroot, with what building a module needs beside the kernel's headers. debootstrap
# mounts things in it: in a mount namespace of its own, so that none is left.
newer_make_root() {
	local made=$newer/root.new codename
	command -v debootstrap >/dev/null || die "debootstrap is not installed; run scripts/deps.sh check"
	newer_mirror
	codename=$(sed -n 's/^Suites: \([^ ]*\).*/\1/p' "$newer/suites.sources")
	progress "making a chroot of Debian $codename in $newer_root"
	rm -rf --one-file-system "$made"
	(
		eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
		export http_proxy
		exec unshare --mount debootstrap --variant=minbase --include=gcc,make \
			--keyring="$newer_keyring" "$codename" "$made" "$newer_uri"
	) >"$newer/debootstrap.log" 2>&1 ||
		die "debootstrap cannot make a chroot of Debian $codename, see $newer/debootstrap.log"
	mkdir -p "$made/src"
	rm -rf "$newer_root" && mv "$made" "$newer_root"
}

# newer_install PACKAGE... - into the chroot.
newer_install() {
	local lock code
	[ "$(id -u)" = 0 ] || die "a chroot of a newer Debian suite needs root"
	exec {lock}>"$newer/lock"
	flock "$lock"
	[ -d "$newer_root/src" ] || newer_make_root
	DEBIAN_FRONTEND=noninteractive newer_apt apt-get -o DPkg::Chroot-Directory="$newer_root" \
		install -y -qq --no-install-recommends "$@" >"$newer/install.log" 2>&1
	code=$?
	newer_apt apt-get clean
	exec {lock}>&-
	return $code
}

# newer_run COMMAND... - in the chroot, as root, the current directory being /src there.
newer_run() {
	unshare --mount sh -c 'mount --bind . "$0/src" && mount -t proc proc "$0/proc" &&
		exec chroot "$0" "$@"' "$newer_root" "$@"
}
