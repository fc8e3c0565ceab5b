//! Finds Redis and Postgres for the tests, or installs them from the system's packages. The tests start servers of
//! their own, so none of the system's is started here, nor left enabled.

use std::process::{Command, Stdio};

/// A store that the tests need.
#[derive(Clone, Copy, Debug)]
enum Store {
    Redis,
    Postgres,
}

impl Store {
    /// Looks where the tests will look: Debian, Alpine and Homebrew may keep `initdb` out of PATH.
    fn is_installed(self) -> bool {
        succeeds(match self {
            Self::Redis => "command -v redis-server && command -v redis-cli",
            Self::Postgres => {
                r#"
                command -v initdb && exit
                for binary in /usr/lib/postgresql/*/bin/initdb /usr/lib64/pgsql/*/bin/initdb \
                    /usr/libexec/postgresql*/initdb /opt/homebrew/opt/postgresql*/bin/initdb \
                    /usr/local/opt/postgresql*/bin/initdb
                do [ -x "$binary" ] && exit; done
                exit 1"#
            }
        })
    }
}

/// A package manager, the shell that installs the packages in `$*` with it, and their names.
struct Manager {
    program: &'static str,
    needs_root: bool,
    install: &'static str,
    redis: &'static str,
    postgres: &'static str,
}

const MANAGERS: [Manager; 5] = [
    Manager {
        program: "apt-get",
        needs_root: true,
        install: APT_INSTALL,
        redis: "redis-server",
        postgres: "postgresql",
    },
    Manager {
        program: "dnf",
        needs_root: true,
        install: "dnf install -y $*",
        // By file, since newer Fedoras have Valkey in place of Redis.
        redis: "/usr/bin/redis-server",
        postgres: "/usr/bin/initdb",
    },
    Manager {
        program: "apk",
        needs_root: true,
        install: "apk add --no-cache $*",
        redis: "redis",
        postgres: "postgresql postgresql-client",
    },
    Manager {
        program: "pacman",
        needs_root: true,
        install: "pacman -Sy --noconfirm --needed $*",
        redis: "redis",
        postgres: "postgresql",
    },
    Manager {
        program: "brew",
        // It refuses root.
        needs_root: false,
        install: "brew install $*",
        redis: "redis",
        postgres: "postgresql",
    },
];

/// Debian starts a server when it is installed, unless a `policy-rc.d` forbids it, and enables it for the next boot.
/// The service is called as its package.
const APT_INSTALL: &str = r#"
set -eu
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
    trap 'rm -f $policy' EXIT
    trap 'exit 1' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' > $policy
    chmod 755 $policy
fi
apt-get -q -o DPkg::Lock::Timeout=120 update
apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $*
if [ -d /run/systemd/system ]; then systemctl disable $*; fi
"#;

/// Installs what is missing.
pub(crate) fn run() -> Result<(), String> {
    for store in [Store::Redis, Store::Postgres] {
        if !store.is_installed() {
            install(store).map_err(|why| format!("{store:?} is missing, {why}"))?;
        }
        println!("{store:?} is installed");
    }
    Ok(())
}

fn install(store: Store) -> Result<(), String> {
    let is_there = |manager: &&Manager| succeeds(&format!("command -v {}", manager.program));
    let Some(manager) = MANAGERS.iter().find(is_there) else {
        return Err("and this system has no package manager that we know: install it by hand".to_owned());
    };
    let packages = match store {
        Store::Redis => manager.redis,
        Store::Postgres => manager.postgres,
    };
    println!("installing {packages} with {}", manager.program);
    let status = shell(manager)?
        .args(["-c", manager.install, "install", packages])
        .stdin(Stdio::null())
        .status();
    if status.is_ok_and(|status| status.success()) && store.is_installed() {
        return Ok(());
    }
    Err(format!(
        "and could not be installed with {}: install it by hand",
        manager.program
    ))
}

/// A shell that may do what the package manager does.
fn shell(manager: &Manager) -> Result<Command, String> {
    if !manager.needs_root || succeeds(r#"[ "$(id -u)" = 0 ]"#) {
        return Ok(Command::new("sh"));
    }
    if !succeeds("sudo -n true") {
        let program = manager.program;
        return Err(format!(
            "and {program} needs root to install it: run `sudo -v`, then `cargo xtask setup`"
        ));
    }
    let mut shell = Command::new("sudo");
    shell.args(["-n", "sh"]);
    Ok(shell)
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
