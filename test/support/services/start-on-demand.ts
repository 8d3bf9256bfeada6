import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startMariadb } from './mariadb.js'
import { startMongo } from './mongo.js'

/** The database servers that tests share, and the programs that each of them takes. */
const SERVERS = {
  mariadb: { programs: ['mariadbd'], start: startMariadb },
  mongo: { programs: ['java', 'mvn'], start: () => startMongo({ isCompiled: true }) },
}

/**
 * Runs once before all tests. Suites run in several processes: they ask here for the port of a database server, which is
 * started when the first of them asks, and stopped after the last test.
 */
export default async function startOnDemand(): Promise<() => Promise<void>> {
  if (process.env.TEST_TIER !== 'quick') warnOfMissing()
  const started = new Map<string, Promise<{ port: number; stop(): Promise<void> }>>()
  const broker = createServer(async ({ url }, response) => {
    // A worker that asks again later would find a connection that was kept closed.
    response.setHeader('Connection', 'close')
    try {
      const name = url?.slice(1) as keyof typeof SERVERS
      if (!started.has(name)) started.set(name, SERVERS[name].start())
      response.end(`${(await started.get(name))?.port}`)
    } catch (error) {
      response.writeHead(500).end(`${(error as Error).stack}`)
    }
  }).listen(0, '127.0.0.1')
  await once(broker, 'listening')
  process.env.TEST_SERVERS = `http://127.0.0.1:${(broker.address() as AddressInfo).port}`
  return async () => {
    broker.close()
    broker.closeAllConnections()
    for (const server of await Promise.allSettled(started.values()))
      if (server.status === 'fulfilled') await server.value.stop()
  }
}

/** Says once which tests are skipped because this machine has no server for them. */
function warnOfMissing(): void {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` }
  const isMissing = (program: string): boolean =>
    spawnSync('sh', ['-c', `command -v ${program}`], { env }).status !== 0
  for (const [name, { programs }] of Object.entries(SERVERS)) {
    const missing = programs.filter(isMissing)
    if (missing.length > 0)
      process.stderr.write(`Tests on ${name} are skipped: this machine has no ${missing.join(', no ')}.\n`)
  }
}
