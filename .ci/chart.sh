#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# chart.sh HELM PROGRAM FOLDER [REPOSITORY DIGEST]: packages the chart as FOLDER/sluice-VERSION.tgz with Helm. PROGRAM
# is the entry point, which prints the schema of the sites and the settings. With REPOSITORY and DIGEST the chart runs
# that image. The variable SOURCE is the URL of the source code, which the chart names if it is set. The same commit
# always gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
helm=$1 program=$2 folder=$3 repository=${4:-} digest=${5:-}
made=$(git log -1 --format=%ct 2>/dev/null || echo 0)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R envoy/chart "$work/sluice"
.ci/chart.py "$program" "$work/sluice"
if [ -n "$repository" ]; then
    sed -i -e "/^image:/s|repository: \"\"|repository: $repository/edge|" \
        -e "/^image:/s|digest: \"\"|digest: \"$digest\"|" "$work/sluice/values.yaml"
    grep -q "repository: $repository/edge" "$work/sluice/values.yaml"
fi
[ -z "${SOURCE:-}" ] || printf 'sources: ["%s"]\n' "$SOURCE" >>"$work/sluice/Chart.yaml"
# Helm keeps the times of the files.
find "$work/sluice" -exec touch --date="@$made" {} +
mkdir -p "$folder"
HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm \
    "$helm" package --destination "$folder" "$work/sluice" >/dev/null
