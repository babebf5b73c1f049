// SPDX-License-Identifier: Apache-2.0
// Constant arrivals: RATE requests a second for SECONDS, sent when they are due, whether earlier ones have been
// answered or not. SEED selects the objects at random, the same ones for each contender.
import http from 'k6/http';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';

const { BASE, RATE, SECONDS, OBJECTS, SEED } = __ENV;
const rate = Number(RATE);
const failed = new Counter('failed');

export const options = {
    scenarios: {
        arrivals: {
            executor: 'constant-arrival-rate',
            rate,
            timeUnit: '1s',
            duration: `${SECONDS}s`,
            // Enough for a server that is slow for a second.
            preAllocatedVUs: Math.max(50, Math.ceil(rate / 4)),
            maxVUs: Math.max(50, rate),
            gracefulStop: '10s',
        },
    },
    discardResponseBodies: true,
    // Each sample is sent to the bench, which does not need tags.
    systemTags: [],
};

// An integer hash (Murmur3's finalizer).
function mixed(number) {
    let n = number | 0;
    n = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
    n = Math.imul(n ^ (n >>> 13), 0xc2b2ae35);
    return (n ^ (n >>> 16)) >>> 0;
}

export default function () {
    const number = exec.scenario.iterationInTest;
    const object = mixed(number + Number(SEED) * 1000003) % Number(OBJECTS);
    const response = http.get(`${BASE}/o${object}.bin`);
    if (response.status !== 200) {
        failed.add(1);
    }
}
