// SPDX-License-Identifier: Apache-2.0
//! Values that the workers share.

mod agreement;
