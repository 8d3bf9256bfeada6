import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
const mint = chain.mint('a')
const paid = chain.spend({ outputs: [{ satoshis: 5000, lockingScript: p2pkh(1) }] })
const token = chain.spend({ outputs: [p2pkh(1)] })
const spends = (...coins: [FakeTransaction, number][]): FakeTransaction =>
  chain.spend({ inputs: coins.map(([transaction, vout]) => ({ transaction, vout })), outputs: [] })

test.each([
  ['a mint', spends([mint, 0], [paid, 0], [mint, 2]), [mint, paid], [0, 2], [0, 2]],
  ['the genesis', spends([chain.genesis, 0], [paid, 0]), [chain.genesis, paid], [0], [0]],
  ['a payment', spends([paid, 0]), [paid], [], []],
  ['a coin of one satoshi', spends([paid, 0], [token, 0]), [paid, token], [], [1]],
  ['what is not there', spends([paid, 0], [token, 0]), [paid], [1], [1]],
])(
  'an engine that says no mode is to retain what may be a coin of %s',
  async (_, spending, sources, names, ordinals) => {
    const beef = beefOf(spending, { proven: false, with: sources })
    const managers = [new NamesTopicManager({ deployment: chain.deployment }), new OrdinalsTopicManager()]
    const retained = async (mode?: 'current-tx'): Promise<number[][]> => {
      const asked = managers.map((manager) => manager.identifyAdmissibleOutputs(beef, [], undefined, mode))
      return (await Promise.all(asked)).map(({ coinsToRetain }) => coinsToRetain)
    }
    expect([await retained(), await retained('current-tx')]).toEqual([
      [names, ordinals],
      [[], []],
    ])
  },
)
