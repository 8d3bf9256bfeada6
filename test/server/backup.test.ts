import { copyFile, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import Database from 'libsql'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { beefOf, FakeChain } from '../support/fake-chain.js'
import { useServers } from '../support/test-server.js'

const servers = useServers()
const chain = new FakeChain()

const note = (text: string) => chain.inscribe({ contentType: 'text/plain', body: utf8(text) })

test('the copy that the operators are told to make while the service runs is a whole store', async () => {
  const page = await readFile(resolve(import.meta.dirname, '../../docs/operating.md'), 'utf8')
  const [, statement = ''] = /^sqlite3 data\/minetree\.sqlite "(.*)"$/m.exec(page) ?? []
  const server = await servers.start()
  const first = note('first')
  await server.submit(beefOf(first), ['tm_ordinals'])
  const before = server.rows()

  const copy = join(await servers.folder(), 'backup.sqlite')
  const connection = new Database(join(server.dataDir, 'minetree.sqlite'))
  const under = Array.from({ length: 20 }, (_, index) =>
    server.submit(beefOf(note(`meanwhile ${index}`)), ['tm_ordinals']),
  )
  connection.exec(statement.replace('backup.sqlite', copy))
  connection.close()
  expect((await Promise.all(under)).every(({ status }) => status === 200)).toBe(true)

  const restored = await servers.folder()
  await copyFile(copy, join(restored, 'minetree.sqlite'))
  const other = await servers.start({ DATA_DIR: restored })
  const { body } = await other.ask(`/content/${first.outpoint(0)}`)
  expect(body.toString('utf8')).toBe('first')
  expect((await other.ask('/health/ready')).status).toBe(200)
  for (const row of before.graph_outputs ?? []) expect(other.rows().graph_outputs).toContain(row)
})
