// SPDX-License-Identifier: Apache-2.0
//! The runtime of the filter.

/// The runtime of the filter in Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// A VM for each worker. A fault of the filter ends only the VM, not Envoy.
    Wasm,
    /// Envoy itself: the filter is a shared object in Envoy's process.
    Native,
}

impl Runtime {
    /// The values of `SLUICE_RUNTIME`.
    pub const CHOICES: &[(&str, Self)] = &[("wasm", Self::Wasm), ("native", Self::Native)];

    /// The value of `SLUICE_RUNTIME` for this runtime.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Native => "native",
        }
    }

    /// The type of the filter in Envoy's configuration.
    pub const fn filter_type(self) -> &'static str {
        match self {
            Self::Wasm => "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            Self::Native => {
                "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter"
            }
        }
    }

    /// The variable that names the module of this runtime.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Wasm => "SLUICE_WASM",
            Self::Native => "SLUICE_NATIVE",
        }
    }
}
