//! The key that signs checkpoints. It is made with the folder and tells whose checkpoint it is; that nothing was changed is
//! told by comparing a checkpoint that was kept elsewhere, since whoever can write the folder can read the key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::io::ErrorKind;
use std::path::Path;
use trellis_orchestrator::log_key::LogKey;

pub(crate) const FILE: &str = "log-key";

fn make(folder: &Path, path: &Path) -> std::io::Result<()> {
    let made = LogKey::make().ok_or_else(|| std::io::Error::other("no key could be made"))?;
    write_private(path, BASE64.encode(made).as_bytes())?;
    crate::engine_log::sync_folder(folder)
}

fn lost(what: &str) -> std::io::Error {
    let told = format!(
        "the file `{FILE}` {what}, and only it can sign checkpoints of this log; put it back from a backup, or write the \
         word `new` into it to have another key made"
    );
    std::io::Error::new(ErrorKind::InvalidData, told)
}

/// Makes a key for a folder that has none yet.
pub(crate) fn create(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(FILE);
    if path.exists() { Ok(()) } else { make(folder, &path) }
}

/// Reads the folder's key. One that is lost is not replaced in silence: checkpoints would be somebody else's then.
pub(crate) fn of(folder: &Path) -> std::io::Result<LogKey> {
    let path = folder.join(FILE);
    let read = std::fs::read(&path);
    let mut text =
        read.map_err(|error| if error.kind() == ErrorKind::NotFound { lost("is missing") } else { error })?;
    if text.trim_ascii() == b"new" {
        make(folder, &path)?;
        text = std::fs::read(&path)?;
    }
    let bytes = BASE64.decode(text.trim_ascii()).map_err(|_| lost("holds no key"))?;
    LogKey::of_stored(&bytes).ok_or_else(|| lost("holds no key"))
}

/// Nobody else may sign in our name. Written beside its place and moved there, so that it is whole or not there.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let scratch = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&scratch)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(scratch, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_key_that_nobody_else_may_read() {
        let folder = tempfile::TempDir::new().unwrap();
        let key = || create(folder.path()).and_then(|()| of(folder.path())).unwrap().public();
        assert_eq!(key(), key(), "made once");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_lost_key_is_not_replaced_unless_somebody_says_so() {
        let folder = tempfile::TempDir::new().unwrap();
        create(folder.path()).unwrap();
        let before = of(folder.path()).unwrap().public();
        let file = folder.path().join(FILE);
        for bytes in [&b""[..], b"none", b"\xff\xfe"] {
            std::fs::write(&file, bytes).unwrap();
            assert!(of(folder.path()).unwrap_err().to_string().contains("`log-key` holds no key"));
        }
        std::fs::remove_file(&file).unwrap();
        assert!(of(folder.path()).unwrap_err().to_string().contains("`log-key` is missing"));
        std::fs::write(&file, "new\n").unwrap();
        let after = of(folder.path()).unwrap().public();
        assert_ne!(after, before);
        assert_eq!(of(folder.path()).unwrap().public(), after, "once");
    }
}
