import { decodeMineNode } from '../backend/src/protocol/mine-node.js'
import { COVENANT_VERSIONS, type CovenantVersion, ownerCommitment } from '../backend/src/protocol/mint.js'
import { parseOutpoint } from '../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES, termsOf } from '../backend/src/protocol/profile.js'
import { covenantCode } from '../src/mining/covenant.js'
import { searchNonce } from '../src/mining/search/search-nonce.js'
import { type CovenantSpend, covenantMint, refusalByScript } from '../test/support/mining/covenant-mints.js'
import { FakeChain, p2pkh } from '../test/support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../test/support/protocol/mainnet-vectors.js'
import { median, timed } from './support.js'

const ROUNDS = 301

/**
 * Both versions of our covenant against the live one, whose rules are those of version 1: bytes of code, bytes of a mint with
 * one coin to fund it and one output of change, and the time that the SDK's interpreter takes for a mint, by turns.
 */
export async function* covenant(): AsyncGenerator<string> {
  const live = liveMint()
  if (live === undefined) {
    yield 'no transactions of the live chain here (../shared/vectors/mainnet) to measure against'
    return
  }
  for (const covenantVersion of COVENANT_VERSIONS) yield* compare(live, covenantVersion)
}

async function* compare(live: CovenantSpend, covenantVersion: CovenantVersion): AsyncGenerator<string> {
  const terms = termsOf(PROFILES.local, { covenantVersion })
  const code = covenantCode(terms)
  const liveCode = decodeMineNode(live.spent.lockingScript).code
  yield `version ${covenantVersion}: ${code.length} bytes of code (wanted: at most 465), live ${liveCode.length}`

  for (const name of ['a', 'ab', 'abcdefgh']) {
    const size = sizeOf(await mintOf({ code, covenantVersion, name }))
    const liveSize = sizeOf(await mintOf({ code: liveCode, covenantVersion: 1, name }))
    yield `a mint of ${name}: ${size} bytes (wanted: at most 2,300), live ${liveSize}`
  }

  // Of one bit, as nobody wants to wait for 22: the same opcodes run.
  const oneBit = covenantCode({ ...terms, difficulty: 1 })
  const ours = await mintOf({ code: oneBit, covenantVersion, name: 'ab' })
  for (const mint of [ours, live]) {
    const refusal = refusalByScript(mint)
    if (refusal !== undefined) throw new Error(`the interpreter refuses a mint: ${refusal}`)
  }
  const times = { ours: [] as number[], live: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    times.ours.push(await timed(() => refusalByScript(ours)))
    times.live.push(await timed(() => refusalByScript(live)))
  }
  const ratio = median(times.ours.map((own, round) => own / (times.live[round] ?? Number.NaN)))
  yield `interpreting a mint: ${median(times.ours).toFixed(2)} ms, live ${median(times.live).toFixed(2)} ms`
  yield `ratio ${ratio.toFixed(2)}, median of ${ROUNDS} turns (wanted: at most 0.6)`
}

/**
 * A mint on a fresh tree, with a nonce as the search finds them. Owner's lock and change pay to key hashes; a signature and
 * a key are in the other input.
 */
async function mintOf(options: {
  code: Uint8Array
  covenantVersion: CovenantVersion
  name: string
}): Promise<CovenantSpend> {
  const { code, covenantVersion, name } = options
  const { nameContentType, nameMarker } = PROFILES.local
  const chain = new FakeChain({ covenantVersion, difficulty: 1, nameContentType, nameMarker, root: { code } })
  const { deployment } = chain
  const parent = name.slice(0, -1)
  chain.mintAll(parent)
  const { seed, domain } = decodeMineNode(chain.node(parent).lockingScript)
  const ownerLock = p2pkh(1)
  const noncePrefix = ownerCommitment({ domain, ownerLock, deployment })
  const search = { seed, character: name.slice(-1), difficulty: 1, noncePrefix, workers: 0 }
  const { nonce } = await searchNonce(search)
  return covenantMint(chain, name, { nonce, ownerLock })
}

function sizeOf(mint: CovenantSpend): number {
  return mint.transaction.raw.length
}

/** A mint of the live tree. */
function liveMint(): CovenantSpend | undefined {
  const [vector] = mainnetVectors()?.mineTree.mints ?? []
  const deployment = deploymentOf(PROFILES.mainnet)
  if (vector === undefined || deployment === undefined) return undefined
  const outpoint = parseOutpoint(vector.spends)
  const output = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
  if (output === undefined) throw new Error(`no output ${vector.spends}`)
  return {
    transaction: mainnetTransaction(vector.txid),
    input: 0,
    spent: { ...output, outpoint },
    deployment,
  }
}
