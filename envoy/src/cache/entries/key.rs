// SPDX-License-Identifier: Apache-2.0
//! The site and the URL of an entry, read from the key that Envoy's v1 store writes into the head of each file.
//!
//! A file begins with a block of [`BLOCK`] bytes. The message `CacheFileHeader` follows, in the encoding of Protocol
//! Buffers, and begins with the key. The key's first fields are a name that is the same in all files, and the host. The
//! filter asks the store for the host `SITE!AUTHORITY`, and without `SITE!` for the site without a name.

use sluice_core::key::qualifiers::is_for_slice;
use twox_hash::XxHash3_64;

/// The bytes of a file within which its key ends, unless that is longer than the edge makes any.
pub const KEY_HEAD: usize = 16 << 10;
/// The bytes of a file within which the name of its site ends.
pub const HEAD: usize = 128;
/// The bytes in front of the message.
pub(super) const BLOCK: usize = 24;
/// The first bytes of every file.
pub(super) const MAGIC: &[u8] = b"CACH0000";
/// The tag of the field `key` of `CacheFileHeader`, and of `cluster_name` in `Key`: field 1, with a length.
const FIRST: u8 = 0x0a;
/// The tag of the field `host` of `Key`: field 2, with a length.
const HOST: u8 = 0x12;

/// The tag of the field `path` of `Key`: field 3, with a length.
const PATH: u8 = 0x1a;
/// The beginnings of a variant's qualifiers: a content coding, and the value of a request header.
const VARIANTS: [&[u8]; 2] = [b";ae=", b";vary-"];

/// A number for a site, derived from its name. It is valid while the edge runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(u64);

impl SiteId {
    /// The number of the site `name`.
    pub fn of(name: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(name))
    }

    /// The site of the file that begins with `head`; `None`: the file does not have the form of Envoy's store.
    pub fn read(head: &[u8]) -> Option<Self> {
        let message = head.strip_prefix(MAGIC)?.get(BLOCK - MAGIC.len()..)?;
        let (_, key) = field(message, FIRST)?;
        let (name_length, rest) = field(key, FIRST)?;
        let (host_length, rest) = field(rest.get(name_length..)?, HOST)?;
        let host = rest.get(..host_length).unwrap_or(rest);
        let end = host.iter().position(|byte| *byte == b'!').unwrap_or(0);
        host.get(..end).map(Self::of)
    }
}

/// A number for a URL, derived from the host and the path of its key in the store. It is valid while the edge runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UrlId(u64);

impl UrlId {
    /// The number of the URL with this `path` and `host`, which is preceded by the site.
    pub fn of(host: &[u8], path: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(&[host, b"\0", path].concat()))
    }

    /// The URL of the file that begins with `head`, if the file is a variant; `None`: it is not, or its key is too
    /// long.
    ///
    /// The path in the store's key is the path of a URL, `#`, the hash of the key, and the qualifiers of the key.
    pub fn read_variant(head: &[u8]) -> Option<Self> {
        let StoredKey { host, path } = StoredKey::read(head)?;
        let end = path.iter().position(|byte| *byte == b'#')?;
        let (path, qualifiers) = path.split_at_checked(end)?;
        let is_variant = |mark: &&[u8]| qualifiers.windows(mark.len()).any(|part| part == *mark);
        VARIANTS
            .iter()
            .any(is_variant)
            .then(|| Self::of(host, path))
    }
}

/// The key of an entry, as the filter sends it to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredKey<'a> {
    /// The name of the site and `!`, if the site has a name, and the authority.
    pub host: &'a [u8],
    /// The path of the URL, `#`, the hash of the key, and the qualifiers of the key.
    pub path: &'a [u8],
}

impl<'a> StoredKey<'a> {
    /// The key of the file that begins with `head`; `None`: the file does not have the form of Envoy's store, or its
    /// key is longer than `head`.
    pub fn read(head: &'a [u8]) -> Option<Self> {
        let message = head.strip_prefix(MAGIC)?.get(BLOCK - MAGIC.len()..)?;
        let (_, key) = field(message, FIRST)?;
        let (name_length, rest) = field(key, FIRST)?;
        let (host_length, rest) = field(rest.get(name_length..)?, HOST)?;
        let (host, rest) = rest.split_at_checked(host_length)?;
        let (path_length, rest) = field(rest, PATH)?;
        let path = rest.get(..path_length)?;
        Some(Self { host, path })
    }

    /// The URL of the object if the entry is one of its slices. All versions of an object have one URL.
    pub fn sliced_object(self) -> Option<UrlId> {
        let path = std::str::from_utf8(self.path).ok()?;
        let (url, _) = path.split_once('#').filter(|_| is_for_slice(path))?;
        Some(UrlId::of(self.host, url.as_bytes()))
    }
}

/// The length of a message's first field, if the field has this `tag`, and the bytes after the length.
fn field(message: &[u8], tag: u8) -> Option<(usize, &[u8])> {
    let (found, rest) = message.split_first()?;
    if *found != tag {
        return None;
    }
    // A varint has seven bits in each byte, the lowest first. The last byte is below 128.
    let digits = rest.iter().position(|byte| *byte < 0x80)? + 1;
    let (digits, rest) = rest.split_at_checked(digits).filter(|_| digits <= 5)?;
    let length = digits
        .iter()
        .rev()
        .fold(0_u64, |length, byte| (length << 7) | u64::from(byte & 0x7f));
    Some((usize::try_from(length).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The head of a file that Envoy 1.40 has written for `GET /a?b=c` with `Host: assets!edge.test:80`.
    const NAMED: &[u8] =
        b"CACH0000\x00\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\
        \n7\n\x16cluster_name_goes_here\x12\x13assets!edge.test:80\x1a\x06/a?b=c@\x01\
        \x12\x0c\x08\xeb\xbf\x90\xd8\x06\x10\xc0\xa6\xe4\x85\x02\x1a\x0e\n\x07:status\x12\x03200";
    /// The head of such a file with `Host: plain.test`.
    const PLAIN: &[u8] =
        b"CACH0000\x00\x00\x00\xf6\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\
        \n.\n\x16cluster_name_goes_here\x12\nplain.test\x1a\x06/a?b=c@\x01\
        \x12\x0c\x08\xeb\xbf\x90\xd8\x06\x10\xc0\xaf\xde\x86\x02\x1a\x0e\n\x07:status\x12\x03200";

    #[test]
    fn a_file_of_envoys_says_its_site() {
        assert_eq!(SiteId::read(NAMED), Some(SiteId::of(b"assets")));
        assert_eq!(SiteId::read(PLAIN), Some(SiteId::of(b"")));
    }

    #[test]
    fn the_longest_name_is_within_the_head() {
        let name = "s".repeat(63);
        let host = format!("{name}!{}", "h".repeat(9_000));
        let mut file = NAMED.get(..BLOCK).unwrap().to_vec();
        // The key has 9,100 bytes, and the host 9,064.
        file.extend(b"\n\x8c\x47\n\x16cluster_name_goes_here\x12\xe8\x46");
        file.extend(host.as_bytes());
        let head = file.get(..HEAD).unwrap();
        assert_eq!(SiteId::read(head), Some(SiteId::of(name.as_bytes())));
    }

    /// The head of a file with this path.
    fn head_of(path: &str) -> Vec<u8> {
        let length = |bytes: usize| char::from(u8::try_from(bytes).unwrap());
        let (path_length, key_length) = (length(path.len()), length(path.len() + 8));
        let zeros = "\0".repeat(BLOCK - MAGIC.len());
        let key = format!("\n{key_length}\n\x01c\x12\x01a\x1a{path_length}{path}");
        [MAGIC, zeros.as_bytes(), key.as_bytes()].concat()
    }

    #[test]
    fn a_file_of_a_variant_says_its_url() {
        let url = Some(UrlId::of(b"a", b"/p"));
        for (path, expected) in [
            ("/p#0123;ae=br", url),
            ("/p#0123;g=7;vary-accept=x", url),
            ("/p#0123;g=7", None),
            ("/p#0123", None),
            ("/p?x;ae=br", None),
            ("/q#0123;ae=br", Some(UrlId::of(b"a", b"/q"))),
        ] {
            let head = head_of(path);
            assert_eq!(UrlId::read_variant(&head), expected, "{path}");
            let cut = head.get(..head.len() - 1).unwrap();
            assert_eq!(UrlId::read_variant(cut), None, "{path}");
        }
        assert_eq!(UrlId::read_variant(NAMED), None);
    }

    #[test]
    fn a_file_of_a_slice_says_its_object() {
        let object =
            |path: &str| StoredKey::read(&head_of(path)).and_then(StoredKey::sliced_object);
        let expected = Some(UrlId::of(b"a", b"/p"));
        for path in ["/p#0123;s=0.1f", "/p#0123;g=7;s=12.2e"] {
            assert_eq!(object(path), expected, "{path}");
        }
        assert_eq!(object("/q#0123;s=0.1f"), Some(UrlId::of(b"a", b"/q")));
        for path in ["/p#0123", "/p#0123;method=HEAD", "/p;s=0.1f"] {
            assert_eq!(object(path), None, "{path}");
        }
    }

    #[test]
    fn what_envoy_does_not_write_has_no_site() {
        for end in 0..BLOCK + 27 {
            assert_eq!(SiteId::read(NAMED.get(..end).unwrap()), None, "{end} bytes");
        }
        let mut other = NAMED.to_vec();
        *other.first_mut().unwrap() = b'B';
        assert_eq!(SiteId::read(&other), None);
    }

    proptest! {
        #[test]
        fn no_head_is_too_strange(at in 0..HEAD, bytes in prop::collection::vec(any::<u8>(), 0..HEAD)) {
            SiteId::read(&bytes);
            let mut changed = NAMED.to_vec();
            let end = changed.len().min(at + bytes.len());
            let at = at.min(end);
            changed.splice(at..end, bytes);
            SiteId::read(&changed);
            UrlId::read_variant(&changed);
        }
    }
}
