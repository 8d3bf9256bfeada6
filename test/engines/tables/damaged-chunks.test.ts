import { createHash } from 'node:crypto'
import { CHUNK_BYTES } from '../../../backend/src/graph/graph-store.js'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import type { RowDatabase } from '../../../backend/src/storage/rows/rows.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const DAMAGED = expect.objectContaining({ code: 'DAMAGED' })

const bytes = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => at * 7 + (at >> 8) + (at >> 18))

onEachTableEngine(({ openStore, closeStores }) => {
  afterAll(closeStores)

  test.each([
    ['one chunk', 9],
    ['no bytes', 0],
    ['exactly one chunk', CHUNK_BYTES],
    ['several chunks', 2 * CHUNK_BYTES + 5],
  ])(
    'a body and a transaction of %s are read while they are intact, and refused when they are not',
    async (_, length) => {
      const { store } = await openStore()
      const body = bytes(length)
      const sha256 = createHash('sha256').update(body).digest('hex')
      const raw = Uint8Array.from([...bytes(length), 1])
      const txid = toHex(reversed(nativeHash256(raw)))
      const content = { sha256, contentType: 'text/plain', length }
      await store.record(
        graphRecords({
          transactions: [{ txid, raw }],
          outputs: [{ outpoint: { txid, vout: 0 }, satoshis: 1, content }],
          contents: [{ sha256, bytes: body }],
        }),
      )
      expect(Buffer.from((await store.transactions.get(txid))?.raw ?? []).equals(Buffer.from(raw))).toBe(true)
      for (const owner of [sha256, txid]) {
        const last = Math.max(Math.ceil((owner === sha256 ? length : length + 1) / CHUNK_BYTES) - 1, 0)
        await (store as unknown as { database: RowDatabase }).database.write((rows) =>
          rows.update(
            'graph_pieces',
            { owner: Buffer.from(owner, 'hex'), position: last },
            { bytes: Buffer.from('damaged') },
          ),
        )
      }
      await expect(
        async () => await store.content.chunk(sha256, Math.max(Math.ceil(length / CHUNK_BYTES) - 1, 0)),
      ).rejects.toEqual(DAMAGED)
      await expect(store.transactions.get(txid)).rejects.toEqual(DAMAGED)
    },
  )
})
