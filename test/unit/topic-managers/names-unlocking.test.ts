import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { NON_STRICT, nonStrictlyUnlocked } from '../../support/protocol/non-strict-mints.js'

/** A tree whose covenant leaves the version free, so that mints may have code in their unlocking scripts. */
const firstTree = (): FakeChain => new FakeChain({ covenantVersion: 1 })

/** What the topic admits of a spend of the root, which comes with its parent, and why not. */
async function judge(
  chain: FakeChain,
  mint: FakeTransaction,
  { proven }: { proven: boolean },
): Promise<[number[], string | undefined]> {
  let code: string | undefined
  const onRefusal = (refusal: TopicRefusal): unknown => (code = refusal.code)
  const manager = new NamesTopicManager({ deployment: chain.deployment, onRefusal })
  const beef = beefOf(mint, { proven, with: [chain.genesis] })
  const { outputsToAdmit } = await manager.identifyAdmissibleOutputs(beef, [0])
  return [outputsToAdmit, code]
}

describe.each(NON_STRICT)('a mint with $has', (unlocking) => {
  test('is admitted where the BEEF has its merkle path, and only there', async () => {
    const chain = firstTree()
    const mint = chain.mint('a', nonStrictlyUnlocked(unlocking))
    expect(await judge(chain, mint, { proven: true })).toEqual([[0, 1, 2], undefined])
    expect(await judge(chain, mint, { proven: false })).toEqual([[], 'NOT_STRICT'])
  })

  test('is asked for by GASP', async () => {
    const chain = firstTree()
    const manager = new NamesTopicManager({ deployment: chain.deployment })
    const mint = chain.mint('a', nonStrictlyUnlocked(unlocking))
    const root = { txid: chain.genesis.txid, outputIndex: 0 }
    for (const proven of [true, false])
      expect(await manager.identifyNeededInputs(beefOf(mint, { proven }))).toEqual([root])
  })

  test('is refused, and not asked for, where the outputs are wrong', async () => {
    const chain = firstTree()
    const manager = new NamesTopicManager({ deployment: chain.deployment })
    const cut = chain.mint('a', { ...nonStrictlyUnlocked(unlocking), outputs: (all) => all.slice(0, 2) })
    expect(await judge(chain, cut, { proven: true })).toEqual([[], 'BAD_OUTPUT'])
    await expect(manager.identifyNeededInputs(beefOf(cut))).rejects.toThrow('can spend a node')
    const bad = chain.mint('a', { ...nonStrictlyUnlocked(unlocking), badWork: true })
    expect(await judge(chain, bad, { proven: true })).toEqual([[], 'BAD_WORK'])
  })
})

test('a mint of five minimal pushes is admitted, proven or not', async () => {
  for (const proven of [true, false]) {
    const chain = firstTree()
    expect(await judge(chain, chain.mint('a'), { proven })).toEqual([[0, 1, 2], undefined])
  }
})

test('four pushes, or a push that breaks off, are no mint even where they are proven', async () => {
  const chain = firstTree()
  for (const unlockingScript of [
    (script: Uint8Array) => script.subarray(2),
    (script: Uint8Array) => concatBytes(script, Uint8Array.of(2, 0)),
  ])
    expect(await judge(chain, chain.mint('a', { unlockingScript }), { proven: true })).toEqual([
      [],
      'BAD_UNLOCKING',
    ])
})
