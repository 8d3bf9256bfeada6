import { concatBytes } from '../../backend/src/protocol/bytes.js'
import NamesTopicManager from '../../backend/src/topic-managers/NamesTopicManager.js'
import { assemble } from '../../src/mining/script.js'
import { beefOf, FakeChain, type FakeTransaction, type MintOverrides } from '../support/fake-chain.js'

/** What an unlocking script may have behind its five pushes: little to run, too much, and what fails. */
const CODE = {
  little: assemble('NOP'),
  tooMuch: new Uint8Array(400_000).fill(0x61),
  failing: assemble('0 VERIFY'),
}

const behind = (code: keyof typeof CODE): MintOverrides => ({
  version: 2,
  unlockingScript: (script) => concatBytes(script, CODE[code]),
})

/** What the topic admits of a spend of the root, which comes with its parent, and why not. */
async function judge(chain: FakeChain, mint: FakeTransaction): Promise<[number[], string | undefined]> {
  let code: string | undefined
  const manager = new NamesTopicManager({
    deployment: chain.deployment,
    onRefusal: (refusal) => {
      code = refusal.code
    },
  })
  const { outputsToAdmit } = await manager.identifyAdmissibleOutputs(
    beefOf(mint, { with: [chain.genesis] }),
    [0],
  )
  return [outputsToAdmit, code]
}

describe('a mint with code in its unlocking script', () => {
  test('is admitted where the code is run', async () => {
    const chain = new FakeChain()
    expect(await judge(chain, chain.mint('a', behind('little')))).toEqual([[0, 1, 2], undefined])
  })

  test('is admitted by its outputs where the code is too much to run', async () => {
    const chain = new FakeChain()
    expect(await judge(chain, chain.mint('a', behind('tooMuch')))).toEqual([[0, 1, 2], undefined])
  })

  test('is refused where the outputs are wrong, with little to run and with too much', async () => {
    const chain = new FakeChain()
    for (const code of ['little', 'tooMuch'] as const) {
      const cut = chain.mint('a', { ...behind(code), outputs: (all) => all.slice(0, 2) })
      expect(await judge(chain, cut)).toEqual([[], 'BAD_OUTPUT'])
      expect(await judge(chain, chain.mint('a', { ...behind(code), badWork: true }))).toEqual([
        [],
        'BAD_WORK',
      ])
    }
  })

  test('is refused where the code fails, or the version may have none', async () => {
    const chain = new FakeChain()
    expect(await judge(chain, chain.mint('a', behind('failing')))).toEqual([[], 'BAD_UNLOCKING'])
    for (const code of ['little', 'tooMuch'] as const) {
      const first = chain.mint('a', { ...behind(code), version: 1 })
      expect(await judge(chain, first)).toEqual([[], 'BAD_UNLOCKING'])
    }
  })

  test('is asked for by GASP, with little to run and with too much', async () => {
    const chain = new FakeChain()
    const manager = new NamesTopicManager({ deployment: chain.deployment })
    const { txid } = chain.genesis
    for (const code of ['little', 'tooMuch'] as const) {
      const mint = chain.mint('a', behind(code))
      expect(await manager.identifyNeededInputs(beefOf(mint))).toEqual([{ txid, outputIndex: 0 }])
      const cut = chain.mint('a', { ...behind(code), outputs: (all) => all.slice(0, 2) })
      await expect(manager.identifyNeededInputs(beefOf(cut))).rejects.toThrow('spend of a node')
    }
    const failing = chain.mint('a', behind('failing'))
    await expect(manager.identifyNeededInputs(beefOf(failing))).rejects.toThrow('spend of a node')
  })
})
