// SPDX-License-Identifier: Apache-2.0
//! Which of Envoy's cache filters stores.

/// Which of Envoy's cache filters stores, and in which of its stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// `envoy.filters.http.cache` with files.
    V1,
    /// `envoy.filters.http.cache_v2` with files.
    V2,
    /// `envoy.filters.http.cache` with its unbounded memory store.
    SimpleV1,
    /// `envoy.filters.http.cache_v2` with its unbounded memory store.
    SimpleV2,
}

impl Store {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::SimpleV1, Self::SimpleV2];

    /// What `STORE` says.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::SimpleV1 => "simple-v1",
            Self::SimpleV2 => "simple-v2",
        }
    }

    /// The cache filter's version, as the policy document says it.
    pub fn version(self) -> &'static str {
        match self {
            Self::V1 | Self::SimpleV1 => "v1",
            Self::V2 | Self::SimpleV2 => "v2",
        }
    }

    /// Whether entries are files.
    pub fn has_files(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }

    /// Reads what `STORE` says.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|store| store.name() == text)
    }
}
