import knex from 'knex'
import { connectionOf } from '../../../backend/src/host/host-database.js'

const SETTINGS = { host: '127.0.0.1', port: 3306, user: 'me', password: 'secret', database: 'overlay' }

function connection(options: object = {}): Record<string, unknown> | undefined {
  return connectionOf(knex({ client: 'mysql2', connection: SETTINGS, ...options }) as never)
}

test('a thread connects to the database as the host does', () => {
  expect(connection()).toEqual(SETTINGS)
  expect(connection({ connection: 'mysql://me:secret@127.0.0.1:3306/overlay' })).toMatchObject({
    password: 'secret',
  })
})

test('a thread does not connect by itself where the host has code in how it connects', () => {
  const nothing = (): void => {}
  expect(connection({ connection: async () => SETTINGS })).toBeUndefined()
  expect(connection({ connection: { ...SETTINGS, typeCast: nothing } })).toBeUndefined()
  expect(connection({ pool: { afterCreate: nothing } })).toBeUndefined()
})
