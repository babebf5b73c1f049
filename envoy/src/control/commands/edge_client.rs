// SPDX-License-Identifier: Apache-2.0
//! The client of the control socket.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::de::DeserializeOwned;
use ureq::http::StatusCode;

use crate::control::failure::ControlFailure;
use crate::control::filter;
use crate::net::unix_client::{self, Call, Reply};
use crate::settings;

/// The options of every command that asks an edge.
#[derive(Args, Clone, Debug, Default)]
pub struct EdgeOptions {
    /// The control socket of the edge; by default that of the edge with the same SLUICE_STATE and SLUICE_EDGE_PORT
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// A client of the control socket of one edge.
#[derive(Debug)]
pub struct EdgeClient {
    socket: PathBuf,
}

impl EdgeClient {
    /// A client of the edge that the options or else the settings name.
    ///
    /// # Errors
    /// `SLUICE_STATE` or `SLUICE_EDGE_PORT` is not valid.
    pub fn new(options: &EdgeOptions) -> anyhow::Result<Self> {
        let socket = match &options.socket {
            Some(socket) => socket.clone(),
            None => settings::control_socket()?,
        };
        Ok(Self { socket })
    }

    /// The answer to a question. `target` is the path below `/v1`.
    ///
    /// # Errors
    /// The edge does not run, or refuses the question.
    pub fn ask<T: DeserializeOwned>(
        &self,
        target: &str,
        fields: &[(String, String)],
    ) -> anyhow::Result<T> {
        let call = Call {
            fields,
            ..Call::get(target)
        };
        let reply = self.call(&call)?;
        if reply.status != StatusCode::OK {
            let failure = ControlFailure::of_body(reply.status, &reply.body);
            anyhow::bail!("{}", failure.reason);
        }
        serde_json::from_str(&reply.body).with_context(|| {
            let socket = self.socket.display();
            format!("the edge at {socket} has another version than this command")
        })
    }

    /// The answer to a call with a status of any kind. The target is the path below `/v1`.
    ///
    /// # Errors
    /// The edge does not run.
    pub fn call(&self, call: &Call<'_>) -> anyhow::Result<Reply> {
        let target = format!("/v1{}", call.target);
        let call = Call {
            target: &target,
            patience: filter::PATIENCE + Duration::from_secs(5),
            ..*call
        };
        unix_client::call(&self.socket, &call).with_context(|| {
            let socket = self.socket.display();
            format!(
                "no edge answers at {socket}: start the edge, set SLUICE_STATE and SLUICE_EDGE_PORT as they are for \
                 the edge, or name its socket with --socket"
            )
        })
    }
}
