import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, stop } from 'esbuild'

/** The database servers that tests share, and the programs that each of them takes. */
const SERVERS = { mariadb: ['mariadbd'], mongo: ['java', 'mvn'] }
const HERE = dirname(fileURLToPath(import.meta.url))

/**
 * Runs once before all tests. Test files run in processes of their own: they ask here for the port of a database server,
 * which is started when the first of them asks, and stopped by `stop.mjs` after the last test.
 */
export default async function startOnDemand() {
  if (process.env.TEST_TIER !== 'quick') warnOfMissing()
  const servers = new Map()
  const serve = async ({ url }, response) => {
    const name = url.slice(1)
    try {
      if (!servers.has(name)) servers.set(name, start(name))
      const { port } = await servers.get(name)
      response.end(`${port}`)
    } catch (error) {
      response.writeHead(500).end(`${error?.stack}`)
    }
  }
  const broker = createServer(serve).listen(0, '127.0.0.1')
  await once(broker, 'listening')
  process.env.TEST_SERVERS = `http://127.0.0.1:${broker.address().port}`
  globalThis.stopTestServers = async () => {
    broker.close()
    broker.closeAllConnections()
    const started = await Promise.allSettled(servers.values())
    for (const { value } of started) await value?.stop()
  }
}

/** Says once which tests are skipped because this machine has no server for them. */
function warnOfMissing() {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` }
  const isMissing = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { env }).status !== 0
  for (const [name, programs] of Object.entries(SERVERS)) {
    const missing = programs.filter(isMissing)
    if (missing.length > 0)
      process.stderr.write(`Tests on ${name} are skipped: this machine has no ${missing.join(', no ')}.\n`)
  }
}

async function start(name) {
  const { startMariadb, startMongo } = await compiled()
  return await (name === 'mariadb' ? startMariadb() : startMongo({ isCompiled: true }))
}

/** Jest does not compile what runs before the tests. */
async function compiled() {
  const { outputFiles } = await build({
    stdin: { contents: `export * from './mariadb.js'; export * from './mongo.js'`, resolveDir: HERE },
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    define: { 'import.meta.dirname': JSON.stringify(HERE) },
  })
  await stop()
  const code = Buffer.from(outputFiles[0].contents).toString('base64')
  return await import(`data:text/javascript;base64,${code}`)
}
