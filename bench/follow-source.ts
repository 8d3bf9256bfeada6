import type { RequestListener } from 'node:http'
import { utf8 } from '../backend/src/protocol/bytes.js'
import { type ChainView, FakeService, NOT_FOUND } from '../test/support/follow/fake-service.js'
import { answerOfTransactions } from '../test/support/follow/junglebus-protocol.js'
import { inscriptionScript, p2pkh } from '../test/support/protocol/fake-chain.js'
import { listening } from '../test/support/server/connections.js'
import { HeaderService } from '../test/support/server/header-service.js'
import { MinedTree } from './mined-tree.js'

/** What the bench is sent when the source is ready. */
export interface SourceReady {
  url: string
  /** A BEEF in hex of a transaction with files of 4 KiB, and their outpoints. */
  files: { beef: string; outpoints: string[] }
}

const FILES = 100

/**
 * The process that a host follows: JungleBus and a service of block headers, at one address. It answers late, as one over the
 * internet does, and mints each name that it is sent.
 */
const [mints = '', latency = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const tree = new MinedTree()
const files = inscribed()
tree.grow(Number(mints))

const view: ChainView = {
  transaction: (txid) => tree.record(txid),
  spenderOf: (outpoint) => tree.spenderOf(outpoint),
  transactions: () => [],
}
const junglebus = new FakeService((path, known) => answerOfTransactions(path, known) ?? NOT_FOUND, view)
junglebus.delay = Number(latency)
const headers = new HeaderService(tree.headers)
const listener: RequestListener = (request, response) =>
  (request.url?.startsWith('/v1/') ? junglebus : headers).listener(request, response)

process.on('message', (name: string) => {
  tree.mintAlone(name)
  process.send?.(name)
})
const { url } = await listening(listener)
process.send?.({ url, files } satisfies SourceReady)

function inscribed(): SourceReady['files'] {
  const { chain } = tree
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })
  const outputs = Array.from({ length: FILES }, (_, index) => {
    const body = utf8(`${index} `.repeat(4096).slice(0, 4096))
    return { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body }) }
  })
  const transaction = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
  tree.headers.mine([coin, transaction])
  const beef = Buffer.from(tree.headers.branch.beef(transaction, [coin])).toString('hex')
  return { beef, outpoints: outputs.map((_, vout) => transaction.outpoint(vout)) }
}
