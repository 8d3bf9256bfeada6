import { join } from 'node:path'
import { PrivateKey } from '@bsv/sdk'
import { readBeefTransaction, writeBeef } from '../../../backend/src/protocol/beef-transaction.js'
import { payAndSubmit } from '../../../src/cli/payment.js'
import type { Draft, SendOutcome } from '../../../src/payments/draft.js'
import { singleTransactionPath } from '../../../src/payments/fake.js'
import { Journal, type Purpose } from '../../../src/payments/journal.js'
import { p2pkhLockOf } from '../../../src/payments/key.js'
import { type Destination, Payments } from '../../../src/payments/payments.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const key = new PrivateKey(21)
const lockingScript = p2pkhLockOf(new PrivateKey(22).toPublicKey())
const output = { satoshis: 10, lockingScript, description: 'It' }
const draft: Draft = { what: 'the test', description: 'A test', inputs: [], outputs: [output], maxFee: 1000 }
/** A server that shows nothing. */
const nowhere = {
  chainTracker: 'scripts only',
  beefOf: async () => undefined,
  spendersOf: async () => [],
} as const
const purpose: Purpose = { kind: 'move', subject: 'a', place: 'here' }

test('what the server shows in a block is not sent again, and so not given up where it is rejected as spent', async () => {
  const journal = new Journal(join(await servers.folder(), 'payments.db'), 'main')
  let kind: SendOutcome['kind'] = 'accepted'
  const send = async (): Promise<SendOutcome> => ({ kind, why: '' })
  const payments = new Payments(journal, { key, coins: [coinsFor(key, 5000)], send })
  const paid = await payments.pay(draft, purpose)
  const txid = paid.transaction.id('hex')
  const mined = readBeefTransaction(paid.beef)
  mined.merklePath = singleTransactionPath({ txid, height: 800_000 })
  let shown = paid.beef
  const to: Destination = {
    chainTracker: { isValidRootForHeight: async () => true, currentHeight: async () => 800_000 },
    beefOf: async () => shown,
    spendersOf: async () => [],
    submit: async () => ({ kind: 'admitted' }),
  }
  // The network has it, whether or not it answers again.
  kind = 'undecided'
  expect(await payments.followUp({}, to)).toMatchObject([{ outcome: 'admitted' }])
  expect(journal.stateOf(txid)).toBe('sent')
  shown = writeBeef(mined)
  kind = 'refused'
  expect(await payments.followUp({}, to)).toMatchObject([{ outcome: 'admitted' }])
  expect(journal.payments()).toMatchObject([{ state: 'mined', isAdmitted: true }])
  journal.close()
})

test('what is in a block before a server has it is submitted until one does, and not paid for again', async () => {
  const journal = new Journal(join(await servers.folder(), 'payments.db'), 'main')
  const send = async (): Promise<SendOutcome> => ({ kind: 'mined', why: 'MINED' })
  const payments = new Payments(journal, { key, coins: [coinsFor(key, 5000, 5000)], send })
  let isAway = true
  const submitted: string[] = []
  const to: Destination = {
    ...nowhere,
    async submit({ transaction }) {
      if (isAway) throw new Error('away')
      submitted.push(transaction.id('hex'))
      return { kind: 'admitted' }
    },
  }
  const paid = await payments.pay(draft, purpose)
  await expect(payments.submit(paid, purpose, to)).rejects.toThrow('away')
  expect(await payments.followUp({}, to)).toMatchObject([{ outcome: 'undecided', why: 'away' }])
  await expect(payments.pay(draft, purpose)).rejects.toMatchObject({ code: 'UNDECIDED' })
  isAway = false
  expect(await payments.followUp({}, to)).toMatchObject([{ outcome: 'admitted' }])
  expect(submitted).toEqual([paid.transaction.id('hex')])
  expect(await payments.followUp({}, to)).toEqual([])
  await payments.pay(draft, purpose)
  journal.close()
})

test('with fake money, too, it is refused where another transaction counts', async () => {
  const to: Destination = { ...nowhere, submit: async () => ({ kind: 'conflict', why: 'it is spent' }) }
  const paying = payAndSubmit(undefined, { draft, purpose, to })
  await expect(paying).rejects.toMatchObject({ message: 'it is spent', exit: 'refused' })
})
