// SPDX-License-Identifier: Apache-2.0
// client.mjs SUITE CACHE_URL ORIGIN_URL RESULTS [hit|pause]: runs the suite against the cache, which is in front of the
// suite's origin (origin.mjs), and writes the result of each test to the file RESULTS:
// {"ID": {"kind": "required", "mark": "pass", "name": …, "detail": …}}.
// SUITE is the folder of http-cache-tests from npm, or a checkout of github.com/http-tests/cache-tests. A test's control
// messages to the origin, at its start and its end, bypass the cache.
// The last argument adds an action between a test's requests:
// hit     after each GET, the URL is requested with only-if-cached until it is a hit once
// pause   in front of the second request of each test, RESULTS.pause is written, and the tests wait until the file is
//         removed; tests that change the origin do not wait, because a cache may forget the changes at a restart
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const [suite, base, origin, file, between] = process.argv.slice(2)
if (file === undefined || ![undefined, 'hit', 'pause'].includes(between)) {
  console.error('usage: client.mjs SUITE CACHE_URL ORIGIN_URL RESULTS [hit|pause]')
  process.exit(2)
}
const resultsFile = path.resolve(file)
process.chdir(suite)

// A request without an answer must not end the run.
const request = http.request
http.request = function (...args) {
  return request(...args).setTimeout(10_000, function () { this.destroy(new Error('no answer in 10 seconds')) })
}

// The layout of a checkout differs from that of the package.
const isPackage = !fs.existsSync('test-engine')
const engine = isPackage ? '.' : 'test-engine'
const load = file => import(pathToFileURL(path.resolve(file)))
const { default: suites } = await load('tests/index.mjs')
if (fs.existsSync('tests/surrogate-control.mjs')) suites.push((await load('tests/surrogate-control.mjs')).default)
const { makeTest, makeCacheTest, testResults } = await load(`${engine}/client/test.mjs`)
const { determineTestResult } = await load(`${engine}/lib/${isPackage ? 'display' : 'results'}.mjs`)
const config = await load(`${engine}/client/config.mjs`)
config.setBaseUrl(base)
config.setUseBrowserCache(false)

// The package's tests have lists of header fields that browsers and Node's own fetch reject.
const plainFetch = isPackage ? createRequire(path.resolve('package.json'))('node-fetch') : globalThis.fetch
const isTest = url => url.startsWith(`${base}/test/`)

/** Requests a stored response, without a request to the origin. It may take a moment until a response is stored. */
async function hitOnce (url, { headers }) {
  const others = headers.filter(([name]) => !['cache-control', 'pragma'].includes(name.toLowerCase()))
  for (let attempt = 0; attempt < 10; attempt++) {
    const response = await plainFetch(url, { headers: [...others, ['Cache-Control', 'only-if-cached']], redirect: 'manual' })
    await response.text()
    if (response.status !== 504) return
    await sleep(10)
  }
}

/** The point in front of the second request at which the tests of a batch wait until the pause is over. */
class Halfway {
  constructor (ids) {
    this.ids = ids
    this.seen = new Set()
    this.waiting = 0
    this.over = this.#allAreThere().then(() => this.#pause())
  }

  async pass (url) {
    const test = new URL(url).pathname.split('/')[2]
    if (!this.seen.has(test)) {
      this.seen.add(test)
      return
    }
    this.waiting++
    await this.over
  }

  async #allAreThere () {
    while (this.waiting + this.ids.filter(id => id in testResults).length < this.ids.length) await sleep(20)
  }

  async #pause () {
    // A test of interim responses has a client of its own, which does not wait here. A pause for such tests alone would
    // begin after their end, during the next tests.
    if (this.waiting === 0) return
    fs.writeFileSync(`${resultsFile}.pause`, '')
    while (fs.existsSync(`${resultsFile}.pause`)) await sleep(20)
  }
}

let halfway
async function fetch (url, init) {
  if (!isTest(url)) return plainFetch(url.replace(base, origin), init)
  if (halfway) {
    await halfway.pass(url)
    // The wait must not count as the cache's time.
    init = { ...init, signal: AbortSignal.timeout(10_000) }
  }
  const response = await plainFetch(url, init)
  if (between === 'hit' && (init.method ?? 'GET') === 'GET') await hitOnce(url, init)
  return response
}
if (isPackage) config.setFetch(fetch)
else globalThis.fetch = fetch

/** Runs tests, several at once. Each test gets a copy of its description, because it writes to it. */
async function run (tests, atOnce, isPaused) {
  for (let first = 0; first < tests.length; first += atOnce) {
    const batch = tests.slice(first, first + atOnce)
    for (const { id } of batch) delete testResults[id]
    halfway = isPaused ? new Halfway(batch.map(({ id }) => id)) : undefined
    await Promise.all(batch.map(test => (makeTest ?? makeCacheTest)(structuredClone(test))))
  }
}

const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE']
const isSafe = ({ requests }) => requests.every(({ request_method: method = 'GET' }) => SAFE.includes(method))
const all = suites.flatMap(({ tests }) => tests).filter(test => !test.browser_only)
for (const [tests, isPaused] of [[all.filter(isSafe), between === 'pause'], [all.filter(test => !isSafe(test)), false]]) {
  await run(tests, 50, isPaused)
  // A busy machine must not cause failures, so failed tests are repeated once with fewer others at a time.
  await run(tests.filter(({ id }) => testResults[id] !== true), 10, isPaused)
}

// The same count as on the suite's page: a test whose dependency has failed does not pass.
const MARKS = { '✅': 'pass', Y: 'pass', '⚪️': 'dependency failed', '🔹': 'setup failed', '↻': 'retry', '-': 'not run' }
const mark = id => MARKS[determineTestResult(suites, id, testResults)[2]] ?? 'fail'
const told = {}
for (const { id, kind = 'required', name, depends_on: dependencies = [] } of all) {
  const details = {
    pass: '',
    'dependency failed': dependencies.filter(id => mark(id) !== 'pass').join(', ')
  }
  told[id] = { kind, mark: mark(id), name, detail: details[mark(id)] ?? String(testResults[id][1] ?? '') }
}
fs.writeFileSync(resultsFile, JSON.stringify(told, null, 2))
process.exit(0)
