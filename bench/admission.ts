import { Spend, Transaction } from '@bsv/sdk'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import { startServer } from '../src/server/server.js'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../test/support/protocol/mainnet-vectors.js'
import { ask, submission } from '../test/support/server/test-server.js'
import {
  chainOfNames,
  configFor,
  LIVE_CODE_SIZE,
  median,
  SILENT,
  spent,
  timed,
  withFolder,
} from './support.js'

/** How many mints are submitted at once, as an import or a follower does. */
const AT_ONCE = 50
const MINTS = 200

/**
 * What it costs to admit one mint of the live covenant's size, with its parent in the BEEF (read, check, engine, both
 * topics and lookup services, store, sync to disk), against what the SDK's interpreter takes for one real mint: by turns,
 * over a chain of {@link MINTS}, one at a time; and in processor time, many at once, which share writes. Then inscriptions over
 * HTTP, eight and sixteen at once, with one after another.
 */
export async function* admission(): AsyncGenerator<string> {
  yield* submittedAtOnce()
  const spend = realMint()
  if (spend === undefined) {
    yield 'left out: the real mints are not in ../shared/vectors/mainnet'
    return
  }
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const minted = chainOfNames(2 * MINTS).map((name) => chain.mint(name))
  const byTxid = new Map([chain.genesis, ...minted].map((mint) => [mint.txid, mint]))
  const beefs = minted.map((mint) => {
    const parent = byTxid.get(mint.transaction.inputs[0]?.txid ?? '')
    return beefOf(mint, { with: parent ? [parent] : [] })
  })
  const admitting: number[] = []
  const interpreting: number[] = []
  const together: number[] = []
  const apart: number[] = []
  await withFolder(async (folder) => {
    const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
    const submit = (beef: Uint8Array) =>
      node.overlay.engine.submit({ beef: beef, topics: Object.values(TOPICS) })
    await submit(beefOf(chain.genesis))
    for (const beef of beefs.slice(0, MINTS)) {
      admitting.push(await timed(() => submit(beef)))
      interpreting.push(await timed(spend))
    }
    for (let at = MINTS; at < 2 * MINTS; at += AT_ONCE) {
      const some = beefs.slice(at, at + AT_ONCE)
      together.push((await spent(() => Promise.all(some.map(submit)))).cpu / AT_ONCE)
      apart.push((await spent(() => some.map(() => spend()))).cpu / AT_ONCE)
    }
    const held = await node.graph.names.byPrefix({ prefix: '', limit: 1000 })
    if (held.length !== minted.length) throw new Error(`admitted ${held.length} of ${minted.length} mints`)
    await node.close()
  })
  const [ours, theirs] = [median(admitting), median(interpreting)]
  yield `admit one mint: ${ours.toFixed(2)} ms; interpret one real mint: ${theirs.toFixed(2)} ms (medians of ${MINTS})`
  yield `ratio ${(ours / theirs).toFixed(2)} (wanted: at most 1.0)`
  const [cpu, their] = [median(together), median(apart)]
  yield `admit ${AT_ONCE} mints at once: ${cpu.toFixed(2)} ms of CPU each; interpret one: ${their.toFixed(2)} ms`
  yield `ratio ${(cpu / their).toFixed(2)} (wanted: at most 0.5)`
}

/** How many submissions are in progress at once, and how many there are of each. */
const CLIENTS = [1, 8, 16] as const
const SUBMITTED = 400
/** By turns, as the machine does other things as well. */
const PARTS = 4

async function* submittedAtOnce(): AsyncGenerator<string> {
  const chain = new FakeChain()
  const taken = new Map<number, number>(CLIENTS.map((clients) => [clients, 0]))
  const waits: number[] = []
  await withFolder(async (folder) => {
    const config = configFor(chain, folder)
    const server = await startServer({ config, logger: SILENT })
    for (let part = 0; part < PARTS; part++) {
      for (const clients of CLIENTS) {
        const left = Array.from({ length: SUBMITTED / PARTS }, (_, at) => {
          const body = Buffer.from(`${part} ${clients} ${at}`)
          return beefOf(chain.inscribe({ contentType: 'text/plain', body }))
        })
        const client = async (): Promise<void> => {
          for (let beef = left.pop(); beef !== undefined; beef = left.pop()) {
            const sent = beef
            waits.push(
              await timed(async () => {
                const { status } = await ask(server.url, '/submit', submission(sent, [TOPICS.ordinals]))
                if (status !== 200) throw new Error(`a submission was answered ${status}`)
              }),
            )
          }
        }
        const took = await timed(() => Promise.all(Array.from({ length: clients }, client)))
        taken.set(clients, (taken.get(clients) ?? 0) + took)
      }
    }
    await server.stop()
  })
  const rate = (clients: number): number => (SUBMITTED * 1000) / (taken.get(clients) ?? Number.NaN)
  waits.sort((one, other) => one - other)
  const late = waits[Math.floor(waits.length * 0.9)] ?? Number.NaN
  const rates = CLIENTS.map((clients) => `${rate(clients).toFixed(0)} at ${clients}`).join(', ')
  yield `submissions over HTTP a second: ${rates} at once; 90 % within ${late.toFixed(0)} ms`
  yield `eight at once are ${(rate(8) / rate(1)).toFixed(2)} times as fast as one after another (wanted: at least 1.3), sixteen ${(rate(16) / rate(1)).toFixed(2)} times`
}

/** The second of the real mints, which spends an output of the first, as something to run again and again. */
export function realMint(): (() => void) | undefined {
  const [first, second] = mainnetVectors()?.mineTree.mints.map(({ txid }) => mainnetTransaction(txid)) ?? []
  if (first === undefined || second === undefined) return undefined
  const [source, transaction] = [first, second].map(({ raw }) => Transaction.fromBinary(raw))
  const inputIndex = second.inputs.findIndex(({ txid }) => txid === first.txid)
  const input = transaction?.inputs[inputIndex]
  const spent = input && source?.outputs[input.sourceOutputIndex]
  if (transaction === undefined || input?.unlockingScript === undefined || spent?.satoshis === undefined) {
    throw new Error('the second real mint does not spend the first')
  }
  const { unlockingScript, sourceOutputIndex, sequence = 0xffffffff } = input
  const spend = {
    sourceTXID: first.txid,
    sourceOutputIndex,
    sourceSatoshis: spent.satoshis,
    lockingScript: spent.lockingScript,
    transactionVersion: transaction.version,
    otherInputs: transaction.inputs.filter((_, index) => index !== inputIndex),
    unlockingScript,
    inputSequence: sequence,
    inputIndex,
    outputs: transaction.outputs,
    lockTime: transaction.lockTime,
  }
  return () => {
    if (!new Spend(spend).validate()) throw new Error('the interpreter refuses a real mint')
  }
}
