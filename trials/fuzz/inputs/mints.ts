import fc from 'fast-check'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { bytes, outpoint } from '../../../test/support/protocol/arbitraries.js'
import { inscriptionScript } from '../../../test/support/protocol/fake-chain.js'
import type { World } from '../world.js'
import { lockingScripts, programs } from './scripts.js'
import type { Made } from './transactions.js'

const LETTERS = ['a', 'b', 'z', '0', '-', 'A', '.', '\0', '\xff']

type Change = (script: Uint8Array) => Uint8Array

/** Changes of the unlocking script: something instead of the five pushes, or around them. */
const changes: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Change>((script) => script) },
  {
    weight: 2,
    arbitrary: programs.map(
      (program): Change =>
        (script) =>
          concatBytes(program, script),
    ),
  },
  programs.map(
    (program): Change =>
      (script) =>
        concatBytes(script, program),
  ),
  programs.map(
    (program): Change =>
      () =>
        program,
  ),
  bytes(20).map(
    (extra): Change =>
      (script) =>
        concatBytes(encodePush(extra), script),
  ),
  fc.nat({ max: 400 }).map(
    (length): Change =>
      (script) =>
        script.subarray(0, length),
  ),
)

/** Mints of the live tree, valid except for what strangers can choose and may try. */
export function strangeMints({ chain, prey }: World): fc.Arbitrary<Made> {
  const from = chain.node('prey')
  const locks = fc.oneof(lockingScripts(prey), bytes(100), fc.constant(inscriptionScript({})))
  return fc
    .record({
      character: fc.constantFrom(...LETTERS),
      ownerLock: locks,
      funding: fc.array(outpoint, { minLength: 1, maxLength: 3 }),
      trailing: fc.array(fc.record({ satoshis: fc.constantFrom(0, 1, 990), lockingScript: locks }), {
        maxLength: 3,
      }),
      version: fc.constantFrom(1, 1, 2, 0xffffffff),
      change: changes,
      at: fc.nat({ max: 3 }),
    })
    .map(({ character, change, at, ...overrides }) => {
      const nodeInputPosition = Math.min(at, overrides.funding.length)
      const { raw, txid, transaction } = chain.mint(`prey${character}`, {
        ...overrides,
        from,
        character,
        nodeInputPosition,
        unlockingScript: change,
      })
      return { raw, txid, outputs: transaction.outputs.length, parents: [] }
    })
}
