import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode, WRITER_THREAD } from '../src/server/node.js'
import { beefOf, FakeChain, type FakeTransaction } from '../test/support/protocol/fake-chain.js'
import { processFolder } from './process-folder.js'
import { chainOfNames, configFor, LIVE_CODE_SIZE, SILENT, timed } from './support.js'

/** The process that `stores` loads: a gateway over a log. Any message is answered with the milliseconds in which it admits a mint. */
const [place, url = ''] = process.argv.slice(2)
const settings: Record<string, Record<string, string>> = {
  MariaDB: { KNEX_URL: url },
  MongoDB: { MONGO_URL: url },
}
const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
const config = configFor(chain, processFolder(), settings[place ?? ''] ?? {})
const { overlay } = await openNode({ config, logger: SILENT, writerThread: WRITER_THREAD })
const submit = (beef: Uint8Array) => overlay.engine.submit({ beef, topics: Object.values(TOPICS) })
await submit(beefOf(chain.genesis))
const minted = new Map<string, FakeTransaction>([[chain.genesis.txid, chain.genesis]])
const names = chainOfNames(200)
process.on('message', async () => {
  const mint = chain.mint(names.shift() ?? '')
  minted.set(mint.txid, mint)
  const parent = minted.get(mint.transaction.inputs[0]?.txid ?? '')
  const beef = beefOf(mint, { with: parent ? [parent] : [] })
  process.send?.(await timed(() => submit(beef)))
})
process.send?.({})
