import { pino } from 'pino'
import { sampleOf } from '../../support/nightly.js'
import { useServers } from '../../support/server/test-server.js'
import { BODY_DEEDS, type BodyDeedName, FRAMING_DEEDS, WAITING_DEEDS } from './body-deeds.js'
import { HostileServer } from './hostile-server.js'

// A peer that a host syncs with (GASP) is a stranger: what it does to its answers costs the host a bounded read.

const MiB = 1024 * 1024
/** A list of each of both topics. */
const TOPICS = 2
/** The longest list that is read, and what may lie in buffers of the machine, for each. */
const MAX_SENT = TOPICS * (16 + 8) * MiB
const GENESIS = `${'ab'.repeat(32)}_0`

const servers = useServers()

/** A logger, and a promise that resolves when it has logged the end of each topic's sync. */
function brokenOff() {
  let count = 0
  let resolve = (): void => undefined
  const all = new Promise<void>((done) => {
    resolve = done
  })
  const write = (line: string): void => {
    if (line.includes('a sync was interrupted') && ++count === TOPICS) resolve()
  }
  return { logger: pino({}, { write }), all }
}

const deeds = sampleOf(
  (Object.keys(BODY_DEEDS) as BodyDeedName[]).filter(
    (name) => ![...WAITING_DEEDS, ...FRAMING_DEEDS].includes(name),
  ),
  3,
)

test.each(deeds)('%s', async (name) => {
  const internal = await HostileServer.open((_, response) => void response.end('{}'))
  const peer = await HostileServer.open((_, response) =>
    BODY_DEEDS[name](response, { internal: internal.url }),
  )
  for (const each of [internal, peer]) onTestFinished(() => each.close())
  const env = { GENESIS, SYNC_PEERS: peer.url, SYNC_INTERVAL_MS: '0', SYNC_TIMEOUT_MS: '2000' }
  const { logger, all } = brokenOff()
  const server = await servers.start(env, { logger })
  await all
  expect((await server.ask('/health/live')).status).toBe(200)
  expect(new Set(peer.requests)).toEqual(new Set(['POST /requestSyncResponse']))
  expect(peer.requests.length).toBeLessThanOrEqual(2 * TOPICS)
  expect(peer.sentBytes).toBeLessThanOrEqual(MAX_SENT)
  expect(internal.requests).toEqual([])
  await server.stop()
})
