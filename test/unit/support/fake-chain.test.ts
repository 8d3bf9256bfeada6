import { Beef, Transaction } from '@bsv/sdk'
import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { readInscription } from '../../../backend/src/protocol/inscription.js'
import { checkMint } from '../../../backend/src/protocol/mint.js'
import { beefOf, FakeChain, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'

test('mints are mints of the chain’s tree', () => {
  const chain = new FakeChain({ tld: 'test', nameMarker: 'mark', difficulty: 6, codeSize: 500 })
  const mints = chain.mintAll('alice')
  const names = mints.map(
    ({ transaction }) => checkMint({ transaction, input: 0, deployment: chain.deployment }).name,
  )
  expect(names).toEqual(['a', 'al', 'ali', 'alic', 'alice'])
  expect(chain.mintAll('alike').map(({ outpoint }) => outpoint(2))).toHaveLength(2)
  expect(chain.mintAll('alice')).toEqual([])
})

test('a parent must have been minted', () => {
  expect(() => new FakeChain().mint('ab')).toThrow('no live node for "a"')
})

test('a mint that was broken leaves the live nodes where they were', () => {
  const chain = new FakeChain()
  const root = chain.node('')
  chain.mint('a', { badWork: true })
  chain.mint('a', { from: root })
  expect(chain.node('')).toBe(root)
  const mint = chain.mint('a', { ownerLock: p2pkh(7), trailing: [] })
  expect(chain.node('').outpoint).toEqual({ txid: mint.txid, vout: 0 })
  expect(chain.node('a').outpoint).toEqual({ txid: mint.txid, vout: 1 })
})

test('the same calls build the same chain, and other calls another', () => {
  const build = () => {
    const chain = new FakeChain()
    const file = chain.inscribe({ contentType: 'text/plain', body: utf8('a') })
    return [
      chain.genesis,
      file,
      chain.mint('x'),
      chain.inscribe({ contentType: 'text/plain', body: utf8('a') }),
    ]
  }
  const txids = build().map(({ txid }) => txid)
  expect(build().map(({ txid }) => txid)).toEqual(txids)
  expect(new Set(txids).size).toBe(4)
})

test('inscriptions are read as they were written, and spent by outpoint or by transaction', () => {
  const chain = new FakeChain()
  const file = chain.inscribe({ contentType: 'text/plain', body: utf8('a'), suffix: mapTail({ app: 'x' }) })
  const [output] = file.transaction.outputs
  expect(readInscription(output?.lockingScript ?? new Uint8Array())).toMatchObject({
    content: { contentType: 'text/plain', body: utf8('a') },
    map: [{ command: 'SET', entries: [['app', 'x']] }],
  })
  const outputs = [{ satoshis: 1, lockingScript: p2pkh(2) }]
  const spent = chain.spend({ inputs: [{ transaction: file, vout: 0 }], outputs })
  expect(chain.spend({ inputs: [{ txid: file.txid, vout: 0 }], outputs }).txid).toBe(spent.txid)
  expect(spent.transaction.inputs[0]).toMatchObject({ txid: file.txid, vout: 0 })
})

describe('a BEEF', () => {
  const chain = new FakeChain()
  const grandparent = chain.inscribe({ contentType: 'text/plain', body: utf8('a') })
  const spend = (transaction: typeof grandparent) =>
    chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [{ satoshis: 1, lockingScript: p2pkh(2) }] })
  const parent = spend(grandparent)
  const child = spend(parent)

  test('of a proven transaction has its path', () => {
    const subject = Transaction.fromBEEF(beefOf(child))
    expect(subject.id('hex')).toBe(child.txid)
    expect(subject.merklePath?.blockHeight).toBe(child.height)
    expect(subject.merklePath?.computeRoot(child.txid)).toBe(child.txid)
    expect(Transaction.fromBEEF(beefOf(child, { height: 5 })).merklePath?.blockHeight).toBe(5)
  })

  test('of an unproven one leads to those that are', () => {
    const bytes = beefOf(child, { proven: false, with: [grandparent, parent], unproven: [parent] })
    const subject = Transaction.fromBEEF(bytes)
    expect(toHex(Uint8Array.from(subject.toBinary()))).toBe(toHex(child.raw))
    expect(subject.merklePath).toBeUndefined()
    const source = subject.inputs[0]?.sourceTransaction
    expect(source?.id('hex')).toBe(parent.txid)
    expect(source?.merklePath).toBeUndefined()
    expect(source?.inputs[0]?.sourceTransaction?.merklePath?.blockHeight).toBe(grandparent.height)
    expect(Beef.fromBinary(bytes).isValid()).toBe(true)
  })
})
