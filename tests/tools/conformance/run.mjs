// SPDX-License-Identifier: Apache-2.0
// run.mjs SUITE ORIGIN_PORT BASE_URL RESULTS: starts the suite's origin on loopback, asks the cache at BASE_URL, which
// stands in front of it, and writes the result of each test into the file RESULTS:
// {"ID": {"kind": "required", "mark": "pass", "name": …, "detail": …}}.
// SUITE is the folder of http-cache-tests from npm, or a checkout of github.com/http-tests/cache-tests.
import fs from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [suite, port, base, file] = process.argv.slice(2)
if (file === undefined) {
  console.error('usage: run.mjs SUITE ORIGIN_PORT BASE_URL RESULTS')
  process.exit(2)
}

// The suite would listen on all addresses. And it closes idle connections after 5 seconds, just when a cache may use one.
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port) {
  this.keepAliveTimeout = 90_000
  return listen.call(this, { port, host: '127.0.0.1' })
}
// A request that has no answer must not end the run.
const request = http.request
http.request = function (...args) {
  return request(...args).setTimeout(10_000, function () { this.destroy(new Error('no answer in 10 seconds')) })
}
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'conformance-'))
Object.assign(process.env, {
  npm_config_protocol: 'http',
  npm_config_port: port,
  npm_config_pidfile: path.join(scratch, 'pid')
})
const resultsFile = path.resolve(file)
process.chdir(suite)

// A checkout has another layout than the package.
const engine = fs.existsSync('test-engine') ? 'test-engine' : '.'
const load = file => import(pathToFileURL(path.resolve(file)))
const { default: suites } = await load('tests/index.mjs')
if (fs.existsSync('tests/surrogate-control.mjs')) suites.push((await load('tests/surrogate-control.mjs')).default)
const { runTests, getResults } = await load(`${engine}/client/runner.mjs`)
const isPackage = engine === '.'
const { determineTestResult } = await load(`${engine}/lib/${isPackage ? 'display' : 'results'}.mjs`)

await load(`${engine}/server/server.mjs`)
// The package's runner takes a fetch, with lists of header fields, that browsers and Node itself do not let pass.
const fetch = isPackage ? [createRequire(path.resolve('package.json'))('node-fetch')] : []
await runTests(suites, ...fetch, false, base)

// As the suite's own page counts: a test whose dependency has failed is no pass.
const MARKS = { '✅': 'pass', Y: 'pass', '⚪️': 'dependency failed', '🔹': 'setup failed', '↻': 'retry', '-': 'not run' }
const results = getResults()
const told = {}
for (const { tests } of suites) {
  for (const { id, kind = 'required', name } of tests.filter(({ id }) => id in results)) {
    const mark = MARKS[determineTestResult(suites, id, results)[2]] ?? 'fail'
    told[id] = { kind, mark, name, detail: mark === 'pass' ? '' : String(results[id][1] ?? '') }
  }
}
fs.rmSync(scratch, { recursive: true })
fs.writeFileSync(resultsFile, JSON.stringify(told, null, 2))
process.exit(0)
