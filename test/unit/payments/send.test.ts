import { ARC, type CreateActionResult, PrivateKey } from '@bsv/sdk'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { arcFor } from '../../../src/cli/pay-services.js'
import { sendThroughArc } from '../../../src/payments/arc.js'
import type { SendOutcome } from '../../../src/payments/draft.js'
import { sendWithWallet } from '../../../src/payments/wallet.js'
import { ACCEPTING_ARC_STATUSES, type ArcServer, arcServer } from '../../support/mining/miners-services.js'
import { coinsFor } from '../../support/protocol/transactions.js'

let arc: ArcServer
beforeEach(async () => {
  arc = await arcServer()
})

/** A transaction that spends a coin of which all is known, as ARC wants it. */
const transaction = coinsFor(new PrivateKey(3), 10)
for (const input of transaction.inputs) input.sourceTransaction = coinsFor(new PrivateKey(3), 20)

const send = async (says: string): Promise<SendOutcome> => {
  arc.says = says
  return await sendThroughArc(new ARC(arc.url))(transaction, '')
}

// The statuses of ARC (`Status` of its API), and the HTTP codes of its errors.
const OUTCOMES: Record<SendOutcome['kind'], string[]> = {
  accepted: ACCEPTING_ARC_STATUSES.filter((status) => status !== 'MINED'),
  mined: ['MINED'],
  undecided: (
    'UNKNOWN SEEN_IN_ORPHAN_MEMPOOL DOUBLE_SPEND_ATTEMPTED MINED_IN_STALE_BLOCK A_NEW_STATUS ' +
    '400 401 403 404 409 422 429 460 466 467 468 469 500 502 503'
  ).split(' '),
  refused: ['REJECTED', '461', '462', '463', '464', '465', '471', '472', '473', '474'],
}

describe.each(Object.entries(OUTCOMES))('a mint is %s', (kind, statuses) => {
  test.each(statuses)('where ARC says %s', async (status) => {
    const outcome = await send(status)
    expect(outcome.kind).toBe(kind)
    expect(outcome.why).toContain(status)
  })
})

test.each([
  ['RECEIVED', 'accepted'],
  ['461', 'refused'],
  ['476', 'undecided'],
])('a mint is sent to an Arcade, which says %s', async (says, kind) => {
  arc.says = says
  const { signal } = new AbortController()
  const config = { profile: PROFILES.local, network: 'main' } as const
  const through = arcFor({ arc: `${arc.url}/arcade`, config, signal })
  const why = expect.stringMatching(new RegExp(`^${says}( no)?$`))
  expect(await through?.(transaction, '')).toMatchObject({ kind, why })
})

test('a mint is undecided where ARC speaks of another one, or of an orphan in its text alone', async () => {
  arc.of = 'ab'.repeat(32)
  for (const says of ['REJECTED', 'SEEN_ON_NETWORK', '461'])
    expect(await send(says)).toMatchObject({ kind: 'undecided', why: expect.stringContaining(arc.of) })
  const said = { status: 'success', txid: transaction.id('hex'), message: 'SEEN_ON_NETWORK orphan' } as const
  const sending = sendThroughArc({ broadcast: async () => said })(transaction, '')
  expect(await sending).toMatchObject({ kind: 'undecided' })
})

test('a mint is undecided where ARC cannot be reached', async () => {
  const sending = sendThroughArc(new ARC('http://127.0.0.1:9'))(transaction, '')
  expect(await sending).toMatchObject({ kind: 'undecided' })
})

test.each<[string, CreateActionResult | Error, SendOutcome['kind']]>([
  ['has sent it', { sendWithResults: [{ txid: transaction.id('hex'), status: 'unproven' }] }, 'accepted'],
  ['is sending it', { sendWithResults: [{ txid: transaction.id('hex'), status: 'sending' }] }, 'accepted'],
  ['failed', { sendWithResults: [{ txid: transaction.id('hex'), status: 'failed' }] }, 'refused'],
  ['speaks of another', { sendWithResults: [{ txid: 'ab'.repeat(32), status: 'failed' }] }, 'undecided'],
  ['says nothing', {}, 'undecided'],
  ['throws', new Error('no such action'), 'undecided'],
])('a wallet that %s', async (_, answer, kind) => {
  const createAction = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer))
  const sent = { txid: transaction.id('hex'), description: 'Send it' }
  expect((await sendWithWallet({ createAction }, sent)).kind).toBe(kind)
})
