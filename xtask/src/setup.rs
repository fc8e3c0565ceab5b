//! Finds what the tests start (Redis, Postgres, a pooler, a false clock), or installs it from the system's packages. The tests start
//! servers of their own, so none of the system's is started here, nor left enabled.

use std::process::{Command, Stdio};

/// A program that the tests need. One more is one more entry of [`TOOLS`].
struct Tool {
    /// For people.
    name: &'static str,
    /// Shell that succeeds where it is installed. It looks where the tests will look.
    found: &'static str,
    /// What brings it, in the order of [`MANAGERS`]; several packages are parted by blanks.
    packages: [&'static str; MANAGERS.len()],
    /// What is left out where it cannot be had; `None` where nothing works without it.
    without_it: Option<&'static str>,
}

const TOOLS: [Tool; 4] = [
    Tool {
        name: "Redis",
        found: "command -v redis-server && command -v redis-cli",
        // By file, since newer Fedoras have Valkey in place of Redis.
        packages: ["redis-server", "/usr/bin/redis-server", "redis", "redis", "redis"],
        without_it: None,
    },
    Tool {
        name: "Postgres",
        // Debian, Alpine and Homebrew may keep `initdb` out of PATH.
        found: r#"
            command -v initdb && exit
            for binary in /usr/lib/postgresql/*/bin/initdb /usr/lib64/pgsql/*/bin/initdb \
                /usr/libexec/postgresql*/initdb /opt/homebrew/opt/postgresql*/bin/initdb \
                /usr/local/opt/postgresql*/bin/initdb
            do [ -x "$binary" ] && exit; done
            exit 1"#,
        packages: [
            "postgresql",
            "/usr/bin/initdb",
            "postgresql postgresql-client",
            "postgresql",
            "postgresql",
        ],
        without_it: None,
    },
    Tool {
        name: "PgBouncer",
        // An ordinary user's PATH may lack sbin.
        found: "PATH=$PATH:/usr/sbin:/usr/local/sbin; command -v pgbouncer",
        packages: ["pgbouncer"; MANAGERS.len()],
        without_it: None,
    },
    Tool {
        name: "faketime",
        found: r#"
            for library in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib64/faketime/libfaketime.so.1 \
                /usr/lib/faketime/libfaketime.so.1 /usr/local/lib/faketime/libfaketime.so.1
            do [ -e "$library" ] && exit; done
            exit 1"#,
        packages: [
            "faketime",
            "libfaketime",
            "libfaketime",
            "libfaketime",
            "libfaketime",
        ],
        without_it: Some("the faults of a replica's clock are skipped"),
    },
];

impl Tool {
    fn is_installed(&self) -> bool {
        succeeds(self.found)
    }
}

/// A package manager, and the shell that installs the packages in `$*` with it.
struct Manager {
    program: &'static str,
    needs_root: bool,
    install: &'static str,
}

const MANAGERS: [Manager; 5] = [
    Manager {
        program: "apt-get",
        needs_root: true,
        install: APT_INSTALL,
    },
    Manager {
        program: "dnf",
        needs_root: true,
        install: "dnf install -y $*",
    },
    Manager {
        program: "apk",
        needs_root: true,
        install: "apk add --no-cache $*",
    },
    Manager {
        program: "pacman",
        needs_root: true,
        install: "pacman -Sy --noconfirm --needed $*",
    },
    Manager {
        program: "brew",
        // It refuses root.
        needs_root: false,
        install: "brew install $*",
    },
];

/// Debian starts a server when it is installed, unless a `policy-rc.d` forbids it, and enables it for the next boot.
/// The service is called as its package; a package without one is no failure.
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
if [ -d /run/systemd/system ]; then systemctl disable $* || :; fi
"#;

/// Installs what is missing.
pub(crate) fn run() -> Result<(), String> {
    for tool in &TOOLS {
        let installed = if tool.is_installed() {
            Ok(())
        } else {
            install(tool)
        };
        match (installed, tool.without_it) {
            (Ok(()), _) => println!("{} is installed", tool.name),
            (Err(why), None) => return Err(format!("{} is missing, {why}", tool.name)),
            (Err(why), Some(left_out)) => println!("{} is missing, {why}; {left_out}", tool.name),
        }
    }
    Ok(())
}

fn install(tool: &Tool) -> Result<(), String> {
    let mut managers = MANAGERS.iter().zip(tool.packages);
    let is_there = |(manager, _): &(&Manager, &str)| succeeds(&format!("command -v {}", manager.program));
    let Some((manager, packages)) = managers.find(is_there) else {
        return Err("and this system has no package manager that we know: install it by hand".to_owned());
    };
    println!("installing {packages} with {}", manager.program);
    let status = shell(manager)?
        .args(["-c", manager.install, "install", packages])
        .stdin(Stdio::null())
        .status();
    if status.is_ok_and(|status| status.success()) && tool.is_installed() {
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
