import { setTimeout } from 'node:timers/promises'
import { Sql } from '../backend/src/facts/connection.js'
import { storeFiles } from '../backend/src/writer/local-writer.js'
import { type Config, readConfig } from '../src/server/config/config.js'
import { type RunningServer, startServer } from '../src/server/server.js'
import { heldRows, SyncedWorld } from '../test/support/server/synced-world.js'
import { ask, submission, treeOf } from '../test/support/server/test-server.js'
import { storedRows } from '../test/support/storage/fact-rows.js'
import { LIVE_CODE_SIZE, median, SILENT, timed, withFolder } from './support.js'

const MINTS = 500
const TRANSFERS = 200
const ROUNDS = 3

/**
 * How long a node that starts empty takes to bring 500 mints from a peer, against submitting the same BEEFs to that peer one
 * after another; both over HTTP, in one process, by turns. Then 200 transfers follow, and both have to hold the same.
 */
export async function* sync(): AsyncGenerator<string> {
  const submitting: number[] = []
  const syncing: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { submitted, synced } = await withFolder((full) => withFolder((empty) => measured(full, empty)))
    submitting.push(submitted)
    syncing.push(synced)
  }
  const [theirs, ours] = [median(submitting), median(syncing)]
  yield `submit ${MINTS} mints: ${theirs.toFixed(0)} ms; bring them by a sync: ${ours.toFixed(0)} ms (medians of ${ROUNDS}); with ${TRANSFERS} transfers after them, both hold the same`
  yield `ratio ${(ours / theirs).toFixed(2)} (wanted: at most 2.0)`
}

async function measured(
  fullFolder: string,
  emptyFolder: string,
): Promise<{ submitted: number; synced: number }> {
  const world = new SyncedWorld({ codeSize: LIVE_CODE_SIZE })
  const beefs = [world.genesis, ...world.mint(MINTS)]
  const settings = treeOf(world.chain.deployment)
  const full = await startServer({ config: configOf(fullFolder, settings), logger: SILENT })
  const submitted = await timed(() => submitTo(full, beefs))
  const config = configOf(emptyFolder, { ...settings, SYNC_PEERS: full.url, SYNC_INTERVAL_MS: '50' })
  let empty: RunningServer | undefined
  const synced = await timed(async () => {
    empty = await startServer({ config, logger: SILENT })
    await inStep(empty, full)
  })
  if (empty === undefined) throw new Error('it did not start')
  await submitTo(full, world.transfer(TRANSFERS), ['tm_ordinals'])
  await inStep(empty, full)
  await empty.stop()
  await full.stop()
  const [one, other] = [fullFolder, emptyFolder].map(heldIn)
  if (one !== other) throw new Error('the two nodes do not hold the same')
  return { submitted, synced }
}

function configOf(folder: string, settings: Record<string, string>): Config {
  return readConfig({
    ...settings,
    PORT: '0',
    DATA_DIR: folder,
    CHAIN_TRACKER: 'scripts-only',
    LOG_LEVEL: 'silent',
  })
}

async function submitTo({ url }: RunningServer, beefs: Uint8Array[], topics?: string[]): Promise<void> {
  for (const beef of beefs) {
    const { status, body } = await ask(url, '/submit', submission(beef, topics))
    if (status !== 200) throw new Error(`not taken: ${body.toString()}`)
  }
}

async function inStep(one: RunningServer, other: RunningServer): Promise<void> {
  const [index, reached] = [one, other].map(({ node }) => new Sql(storeFiles(node.config.dataDir).index))
  const admitted = (sql: Sql | undefined): unknown =>
    sql?.get('select count(*) as count from admission')?.count
  while (admitted(index) !== admitted(reached)) await setTimeout(10)
  for (const sql of [index, reached]) sql?.close()
}

/** What a store holds, but for when each was admitted there, and how far it has synced. */
function heldIn(folder: string): string {
  return JSON.stringify(heldRows(storedRows(folder)))
}
