import { TIP } from '../../../backend/src/graph/records.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { ordinalAt } from '../../../backend/src/read/ordinals.js'
import { FakeIndex } from '../../support/facts/fake-index.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

test('an ordinal in a node that two move on, as only mints of it conflict, is where the better ranked one has it', () => {
  const chain = new FakeChain()
  const index = new FakeIndex(chain)
  onTestFinished(() => index.close())
  const purse = chain.spend({ outputs: [{ satoshis: 9, lockingScript: p2pkh(0) }] })
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: Buffer.from('in a node') })
  const inscribed = chain.move(purse, 0, lockingScript)
  // Its coin comes first, and so into the node of the root.
  const holding = chain.mint('a', { funding: [inscribed], nodeInputPosition: 1 })
  const mint = chain.mint('b')
  const move = chain.move(holding, 0, p2pkh(7))
  const ordinal = parseOutpoint(inscribed.outpoint(0))
  const tip = (): string => {
    const output = ordinalAt(index.sql, ordinal, TIP)?.output
    return output === undefined ? 'none' : formatOutpoint(output.outpoint)
  }
  const prove = (transaction: FakeTransaction, height: number): void =>
    index.prove(transaction, { height, root: height.toString(16).padStart(64, '0') })

  index.transactions(chain.genesis, purse, inscribed, holding)
  expect(tip()).toBe(holding.outpoint(0))
  index.transactions(mint, move)
  expect(index.index.status(mint.txid)).toMatchObject({ isInactive: false })
  expect(index.index.status(move.txid)).toMatchObject({ isInactive: false })
  expect(tip()).toBe(mint.outpoint(0))
  prove(move, 101)
  expect(tip()).toBe(move.outpoint(0))
  prove(mint, 100)
  expect(tip()).toBe(mint.outpoint(0))
})
