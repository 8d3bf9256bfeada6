import { Spend, Transaction } from '@bsv/sdk'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../test/support/protocol/mainnet-vectors.js'
import { chainOfNames, configFor, LIVE_CODE_SIZE, median, SILENT, timed, withFolder } from './support.js'

/**
 * What it costs to admit one mint of the live covenant's size, with its parent in the BEEF (read, check, engine, both
 * topics and lookup services, store, sync to disk), against the time that the SDK's interpreter takes for one real
 * mint; by turns, over a chain of 200.
 */
export async function* admission(): AsyncGenerator<string> {
  const spend = realMint()
  if (spend === undefined) {
    yield 'left out: the real mints are not in ../shared/vectors/mainnet'
    return
  }
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const minted = chainOfNames(200).map((name) => chain.mint(name))
  const byTxid = new Map([chain.genesis, ...minted].map((mint) => [mint.txid, mint]))
  const admitting: number[] = []
  const interpreting: number[] = []
  await withFolder(async (folder) => {
    const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
    const submit = (beef: Uint8Array) =>
      node.overlay.engine.submit({ beef: beef, topics: Object.values(TOPICS) })
    await submit(beefOf(chain.genesis))
    for (const mint of minted) {
      const parent = byTxid.get(mint.transaction.inputs[0]?.txid ?? '')
      const beef = beefOf(mint, { with: parent ? [parent] : [] })
      admitting.push(await timed(() => submit(beef)))
      interpreting.push(await timed(spend))
    }
    const held = await node.graph.names.byPrefix({ prefix: '', limit: 1000 })
    if (held.length !== minted.length) throw new Error(`admitted ${held.length} of ${minted.length} mints`)
    await node.close()
  })
  const [ours, theirs] = [median(admitting), median(interpreting)]
  yield `admit one mint: ${ours.toFixed(2)} ms; interpret one real mint: ${theirs.toFixed(2)} ms (medians of 200)`
  yield `ratio ${(ours / theirs).toFixed(2)} (wanted: at most 1.0)`
}

/** The second of the real mints, which spends an output of the first, as something to run again and again. */
function realMint(): (() => void) | undefined {
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
