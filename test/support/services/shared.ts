import { randomBytes } from 'node:crypto'

/** The port of the server that all tests of this run share. The first to ask waits until it is started. */
export async function portOfShared(server: 'mariadb' | 'mongo'): Promise<number> {
  if (process.env.TEST_TIER === 'quick') throw new Error('quick tests start no database server')
  const response = await fetch(`${process.env.TEST_SERVERS}/${server}`)
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return Number(text)
}

/** A name that no other database of a shared server has. */
export function freshDatabaseName(): string {
  return `test_${randomBytes(8).toString('hex')}`
}
