//! Finds Redis and Postgres for the tests, or installs them from the system's packages. The tests start servers of
//! their own, so none of the system's is started here, nor left enabled.

use std::process::{Command, Stdio};

/// A store that the tests need.
struct Store {
    name: &'static str,
    /// Shell that succeeds if the store is installed.
    is_installed: &'static str,
}

const STORES: [Store; 2] = [
    Store {
        name: "Redis",
        is_installed: "command -v redis-server && command -v redis-cli",
    },
    Store {
        name: "Postgres",
        // Debian and Homebrew keep `initdb` out of PATH; the tests look in the same places.
        is_installed: r#"
            command -v initdb && exit
            for binary in /usr/lib/postgresql/*/bin/initdb /usr/lib64/pgsql/*/bin/initdb \
                /usr/libexec/postgresql*/initdb /opt/homebrew/opt/postgresql*/bin/initdb \
                /usr/local/opt/postgresql*/bin/initdb
            do [ -x "$binary" ] && exit; done
            exit 1"#,
    },
];

/// A package manager, and the shell that installs each store with it.
struct Manager {
    program: &'static str,
    needs_root: bool,
    redis: &'static str,
    postgres: &'static str,
}

const MANAGERS: [Manager; 5] = [
    Manager {
        program: "apt-get",
        needs_root: true,
        redis: APT_REDIS,
        postgres: APT_POSTGRES,
    },
    Manager {
        program: "dnf",
        needs_root: true,
        redis: "dnf install -y redis || dnf install -y valkey-compat-redis",
        postgres: "dnf install -y postgresql-server",
    },
    Manager {
        program: "apk",
        needs_root: true,
        redis: "apk add --no-cache redis",
        postgres: "apk add --no-cache postgresql postgresql-client",
    },
    Manager {
        program: "pacman",
        needs_root: true,
        redis: "pacman -Sy --noconfirm --needed redis",
        postgres: "pacman -Sy --noconfirm --needed postgresql",
    },
    // Homebrew refuses root.
    Manager {
        program: "brew",
        needs_root: false,
        redis: "brew install redis",
        postgres: "brew install postgresql",
    },
];

/// Debian starts and enables a server when it is installed, unless a `policy-rc.d` forbids it; one that is already
/// there stays as it is.
macro_rules! apt_install {
    ($package:literal, $service:literal) => {
        concat!(
            "set -eu\n",
            "export DEBIAN_FRONTEND=noninteractive\n",
            "policy=/usr/sbin/policy-rc.d\n",
            "if ! [ -e $policy ]; then\n",
            "  trap 'rm -f $policy' EXIT; trap 'exit 1' INT TERM HUP\n",
            "  printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod 755 $policy\n",
            "fi\n",
            "apt-get -q -o DPkg::Lock::Timeout=120 update\n",
            "apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends ",
            $package,
            "\n",
            "if [ -d /run/systemd/system ]; then systemctl disable ",
            $service,
            "; fi\n",
        )
    };
}

const APT_REDIS: &str = apt_install!("redis-server", "redis-server");
const APT_POSTGRES: &str = apt_install!("postgresql", "postgresql");

/// Installs what is missing.
pub(crate) fn run() -> Result<(), String> {
    for store in &STORES {
        if succeeds(store.is_installed) {
            println!("{} is installed", store.name);
        } else {
            install(store)?;
        }
    }
    Ok(())
}

fn install(store: &Store) -> Result<(), String> {
    let name = store.name;
    let manager = MANAGERS
        .iter()
        .find(|manager| succeeds(&format!("command -v {}", manager.program)));
    let Some(manager) = manager else {
        return Err(format!(
            "{name} is missing, and this system has no package manager that we know: install it"
        ));
    };
    let script = if name == "Redis" {
        manager.redis
    } else {
        manager.postgres
    };
    println!("{name} is missing: installing it with {}", manager.program);
    let mut command = if manager.needs_root && !succeeds(r#"[ "$(id -u)" = 0 ]"#) {
        if !succeeds("sudo -n true") {
            return Err(format!(
                "{name} is missing, and installing it needs root: run `sudo cargo xtask setup`"
            ));
        }
        let mut command = Command::new("sudo");
        command.args(["-n", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    let status = command.args(["-c", script]).stdin(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) && succeeds(store.is_installed) {
        return Ok(());
    }
    Err(format!(
        "{name} could not be installed with {}: install it by hand",
        manager.program
    ))
}

/// Whether a piece of shell succeeds; what it prints is dropped.
fn succeeds(script: &str) -> bool {
    let quiet = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}
