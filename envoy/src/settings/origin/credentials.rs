// SPDX-License-Identifier: Apache-2.0
//! The credentials for the bucket of `SLUICE_ORIGIN`, from `AWS_…`.

use std::path::{Path, PathBuf};

use crate::settings::FileSecrets;
use crate::settings::environment::Environment;
use crate::sites::{ACCEPTED_SECRET, Credentials, ProfileKeys, is_secret};

/// The variable with the ID of the key for the bucket of `SLUICE_ORIGIN`.
pub const ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
const PROFILE: &str = "AWS_PROFILE";
const FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";

/// The variables of Envoy's environment with a key, and perhaps with its session token.
pub fn environment(has_token: bool) -> Credentials {
    Credentials::Environment {
        access_key_id: ACCESS_KEY_ID.to_owned(),
        secret_access_key: SECRET_ACCESS_KEY.to_owned(),
        session_token: has_token.then(|| SESSION_TOKEN.to_owned()),
    }
}

/// Reads a key, or else the profile for a bucket, or else the standard chain. Envoy reads a key from its environment,
/// so `secrets` gets the parts of the key that are in files.
pub fn read(env: &mut Environment<'_>, secrets: &mut FileSecrets, is_bucket: bool) -> Credentials {
    for name in [ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN] {
        match env.secret(name) {
            Some(secret) if !is_secret(&secret.text) => env.refuse(name, None, ACCEPTED_SECRET),
            Some(secret) if secret.is_from_file => secrets.add(name, secret.text),
            Some(_) | None => {}
        }
    }
    let [has_id, has_secret, has_token] =
        [ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN].map(|name| env.has_secret(name));
    env.check_pair(ACCESS_KEY_ID, SECRET_ACCESS_KEY, [has_id, has_secret]);
    if has_token && !has_id {
        let accepted = "must be unset, or AWS_ACCESS_KEY_ID be set";
        env.refuse(SESSION_TOKEN, None, accepted);
    }
    if has_id && has_secret {
        return environment(has_token);
    }
    read_profile(env, is_bucket).unwrap_or(Credentials::Chain)
}

/// Reads the profile of the AWS CLI. `None`: none is set, there is a problem, or no bucket needs one.
fn read_profile(env: &mut Environment<'_>, is_bucket: bool) -> Option<Credentials> {
    let (profile, file) = (env.set(PROFILE), env.set(FILE));
    if !is_bucket || (profile.is_none() && file.is_none()) {
        return None;
    }
    let path = match &file {
        Some(file) => std::path::absolute(file).ok()?,
        None => at_home(env)?,
    };
    let name = profile.clone().unwrap_or_else(|| "default".to_owned());
    if let Err(error) = ProfileKeys::read(&path, &name) {
        match file {
            Some(file) => env.refuse(FILE, Some(file), format!("{error:#}")),
            None => {
                let accepted = format!("{} to be {error:#}", path.display());
                env.refuse(PROFILE, profile, accepted);
            }
        }
        return None;
    }
    Some(Credentials::File {
        path,
        profile: name,
    })
}

/// The file of the AWS CLI in the user's home folder.
fn at_home(env: &mut Environment<'_>) -> Option<PathBuf> {
    let home = env.set("HOME");
    if home.is_none() {
        let accepted = format!("must be set beside {PROFILE}, or HOME be set");
        env.refuse(FILE, None, accepted);
    }
    Some(Path::new(&home?).join(".aws/credentials"))
}
