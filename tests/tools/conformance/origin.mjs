// SPDX-License-Identifier: Apache-2.0
// origin.mjs SUITE PORT: runs the suite's origin, on loopback, until it is terminated.
// SUITE is the folder of http-cache-tests from npm, or a checkout of github.com/http-tests/cache-tests.
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [suite, port] = process.argv.slice(2)
if (port === undefined) {
  console.error('usage: origin.mjs SUITE PORT')
  process.exit(2)
}

// The suite would listen on all addresses, and would close idle connections after 5 seconds while a cache may use one.
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port) {
  this.keepAliveTimeout = 90_000
  return listen.call(this, { port, host: '127.0.0.1' })
}
Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: port, npm_config_pidfile: '/dev/null' })
process.chdir(suite)
// The layout of a checkout differs from that of the package.
const engine = fs.existsSync('test-engine') ? 'test-engine' : '.'
await import(pathToFileURL(path.resolve(engine, 'server/server.mjs')))
