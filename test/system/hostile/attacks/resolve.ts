import { concatBytes } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../../backend/src/protocol/outpoint.js'
import { at, namedWorld, proofOf, provenanceOf } from '../../../support/client/name-proofs.js'
import { type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { ANYONE, bareTransaction } from '../../../support/protocol/transactions.js'
import { treeOf } from '../../../support/server/test-server.js'
import type { Attack, Scene, Target } from '../attack.js'
import { BODY_DEEDS, bodyDeeds } from '../body-deeds.js'
import { MULTISIG_BYTES, multisigLock } from '../expensive-scripts.js'
import { answer } from '../hostile-server.js'
import { doing, type IndexAnswers, indexFront } from '../index-front.js'
import type { Stage } from '../stage.js'

/** The name that is resolved. */
const NAME = 'abc'
const RECORD = `/svc/names/${NAME}`
const PROOF = `/svc/names/proof/${NAME}`
const PROVENANCE = '/svc/gateway/provenance'

/** What an index shows of a name. */
export interface Shown {
  origin: Outpoint
  tip: Outpoint
  proof: Uint8Array
  provenance: Uint8Array
}

const world = namedWorld()

/** The truth about the name. */
export const TRUTH: Shown = {
  origin: world.origin,
  tip: world.tip,
  proof: proofOf(world.line),
  provenance: provenanceOf(world.way, { vout: 1 }),
}

/** Settings that make a client follow the tree of the name. */
export const RESOLVE_ENV = { ...treeOf(world.deployment), CHAIN_TRACKER: 'scripts-only' }

/** The routes of an index that shows this. */
export function showing({ origin, tip, proof, provenance }: Shown): IndexAnswers {
  return {
    [RECORD]: (_, response) =>
      answer(response, {
        ...{ name: NAME, origin: formatOutpoint(origin) },
        tip: { outpoint: formatOutpoint(tip), spent: false },
      }),
    [PROOF]: (_, response) => answer(response, proof),
    [PROVENANCE]: (_, response) => answer(response, provenance),
  }
}

/** The name as another mint would have it, in no block, paid for by what takes long to check. */
export function expensiveName(bytes: number): Shown {
  const { chain, line, mints } = namedWorld()
  const locked = chain.spend({
    inputs: [],
    outputs: [{ satoshis: 5000, lockingScript: multisigLock(bytes) }],
  })
  const paying = chain.spend({
    inputs: [{ transaction: locked, vout: 0 }],
    outputs: [{ satoshis: 4000, lockingScript: OPEN_LOCK }],
  })
  const lockingScript = mints.ab.transaction.outputs[1]?.lockingScript ?? ANYONE
  const from = { outpoint: at(mints.ab, 1), satoshis: 1, lockingScript }
  const mint = chain.mint(NAME, { from, funding: [{ transaction: paying, vout: 0 }] })
  const origin = at(mint, 2)
  const unproven = [paying, mint]
  return {
    ...{ origin, tip: origin },
    proof: proofOf([...line.slice(0, -1), locked, paying, mint], { unproven }),
    provenance: provenanceOf([mint], { unproven, vout: 2 }),
  }
}

/** The answer of a lookup host for {@link expensiveName}: with `history`, the way to the origin is all there is. */
export function expensiveHistory(bytes: number): object {
  const { tip, proof } = expensiveName(bytes)
  return { type: 'output-list', outputs: [{ outputIndex: tip.vout, beef: Array.from(proof.subarray(40)) }] }
}

/** A proof that is true, with so many transactions in it that have nothing to do with the name. */
function padded(count: number): Shown {
  const strangers: FakeTransaction[] = []
  for (let index = 0; index < count; index++) {
    const inputs = [{ txid: index.toString(16).padStart(64, 'd'), vout: 0 }]
    strangers.push(bareTransaction({ inputs, outputs: [{ satoshis: 1, lockingScript: ANYONE }] }))
  }
  const { line } = world
  return { ...TRUTH, proof: proofOf([...strangers, ...line], { unproven: strangers }) }
}

/** `minetree resolve`, of a hostile index beside an honest one. */
async function resolveScene(stage: Stage, target: Target, hostile: IndexAnswers[]): Promise<Scene> {
  const urls: string[] = []
  for (const answers of [...hostile, showing(TRUTH)]) urls.push((await indexFront(stage, { answers })).url)
  return { args: [target, NAME, '--url', ...urls], env: RESOLVE_ENV }
}

/** What an index can do to a resolver. */
export function resolveAttacks(target: 'resolve' | 'verify' = 'resolve'): Attack[] {
  const attack = (deed: string, answers: (stage: Stage) => IndexAnswers[]): Attack => ({
    ...{ target, server: 'index', deed },
    set: async (stage) => await resolveScene(stage, target, answers(stage)),
  })
  const expensive = MULTISIG_BYTES.map((bytes) =>
    attack(`a proof with an OP_CHECKMULTISIG of ${bytes / 1000} KB`, () => [showing(expensiveName(bytes))]),
  )
  if (target === 'verify') return expensive
  return [
    ...bodyDeeds().map(({ name, deed, atNight }) => ({
      ...attack(`${name} at ${RECORD}`, (stage) => [{ [RECORD]: doing(deed, stage) }]),
      atNight,
    })),
    ...[PROOF, PROVENANCE].flatMap((route) =>
      (['endless body', 'hang', '60 MiB of brackets'] as const).map((deed) =>
        attack(`${deed} at ${route}`, (stage) => [
          { ...showing(TRUTH), [route]: doing(BODY_DEEDS[deed], stage) },
        ]),
      ),
    ),
    ...expensive,
    {
      ...attack('20 indexes with an OP_CHECKMULTISIG of 172 KB each', () => {
        const answers = showing(expensiveName(MULTISIG_BYTES[1]))
        return Array.from({ length: 20 }, () => answers)
      }),
      atNight: true,
    },
    attack('a proof of 300,000 transactions', () => [showing(padded(300_000))]),
    attack('a proof of 63 MiB of nothing', () => {
      const proof = concatBytes(TRUTH.proof, new Uint8Array(63 * 1024 * 1024))
      return [showing({ ...TRUTH, proof })]
    }),
    attack('20 indexes with a record of 60 MiB each', (stage) =>
      Array.from({ length: 20 }, () => ({ [RECORD]: doing(BODY_DEEDS['60 MiB of empty objects'], stage) })),
    ),
  ]
}

/** What the block headers service can do to a resolver. */
export function headersAttacks(): Attack[] {
  return bodyDeeds('some').map(({ name, deed, atNight }) => ({
    ...{ target: 'resolve', server: 'headers', deed: name, atNight },
    async set(stage) {
      const { args, env } = await resolveScene(stage, 'resolve', [])
      const { url } = await stage.serve(doing(deed, stage))
      return { args, env: { ...env, CHAIN_TRACKER: 'headers', HEADERS_SOURCES: `headersservice=${url}` } }
    },
  }))
}
