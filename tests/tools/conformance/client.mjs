// SPDX-License-Identifier: Apache-2.0
// client.mjs SUITE CACHE_URL ORIGIN_URL RESULTS [hit|pause]: asks the cache, which stands in front of the suite's origin
// (origin.mjs), and writes what came of each test into the file RESULTS:
// {"ID": {"kind": "required", "mark": "pass", "name": …, "detail": …}}.
// SUITE is the folder of http-cache-tests from npm, or a checkout of github.com/http-tests/cache-tests. What a test tells
// the origin about itself, and asks it in the end, does not go through the cache.
// Between a test's requests there is nothing, or one of these:
// hit     after each GET, what the cache stores is asked for until it is a hit once
// pause   before the second request of each test, RESULTS.pause is written, and the tests wait until it is gone; tests
//         that change something on the origin do not: a cache may forget after a restart what exactly they changed
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

// A request that has no answer must not end the run.
const request = http.request
http.request = function (...args) {
  return request(...args).setTimeout(10_000, function () { this.destroy(new Error('no answer in 10 seconds')) })
}

// A checkout has another layout than the package.
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

// The package's tests have lists of header fields that neither browsers nor Node itself let pass.
const plainFetch = isPackage ? createRequire(path.resolve('package.json'))('node-fetch') : globalThis.fetch
const isTest = url => url.startsWith(`${base}/test/`)

/** Asks for what the cache stores, which the origin never sees. It may take a moment until a response is stored. */
async function hitOnce (url, { headers }) {
  const others = headers.filter(([name]) => !['cache-control', 'pragma'].includes(name.toLowerCase()))
  for (let attempt = 0; attempt < 10; attempt++) {
    const response = await plainFetch(url, { headers: [...others, ['Cache-Control', 'only-if-cached']], redirect: 'manual' })
    await response.text()
    if (response.status !== 504) return
    await sleep(10)
  }
}

/** Where the tests of a batch wait before their second request until what is between is over. */
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
    fs.writeFileSync(`${resultsFile}.pause`, '')
    while (fs.existsSync(`${resultsFile}.pause`)) await sleep(20)
  }
}

let halfway
async function fetch (url, init) {
  if (!isTest(url)) return plainFetch(url.replace(base, origin), init)
  if (halfway) {
    await halfway.pass(url)
    // The wait is no time that the cache has taken.
    init = { ...init, signal: AbortSignal.timeout(10_000) }
  }
  const response = await plainFetch(url, init)
  if (between === 'hit' && (init.method ?? 'GET') === 'GET') await hitOnce(url, init)
  return response
}
if (isPackage) config.setFetch(fetch)
else globalThis.fetch = fetch

/** Runs tests, so many at once. Each gets a copy of its description, into which it writes. */
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
  // A busy machine is no reason to fail: what has failed is asked once more, with fewer others.
  await run(tests.filter(({ id }) => testResults[id] !== true), 10, isPaused)
}

// As the suite's own page counts: a test whose dependency has failed is no pass.
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
