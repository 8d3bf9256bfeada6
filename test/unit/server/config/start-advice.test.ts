import { reasonWithAdvice } from '../../../../src/server/config/errors.js'

const failed = (code: string, cause?: unknown): Error =>
  Object.assign(new Error(`it failed: ${code}\nmore`, { cause }), { code })

test.each([
  ['EADDRINUSE', 'stop it, or choose another port'],
  ['EADDRNOTAVAIL', 'choose one that it has'],
  ['ENOTFOUND', 'no host has this name: correct it'],
  ['EAI_AGAIN', 'no name server answers'],
  ['EACCES', 'grant it'],
  ['EROFS', 'grant it'],
  ['SQLITE_READONLY', 'grant it'],
  ['ENOSPC', 'free some space'],
  ['SQLITE_FULL', 'free some space'],
  ['CERT_HAS_EXPIRED', 'renew the certificate'],
  ['ECONNREFUSED', 'start it, or correct the address'],
  ['ER_ACCESS_DENIED_ERROR', 'correct the user and the password'],
])('of %s, also as a cause, it says in one line what to do', (code, advice) => {
  for (const error of [failed(code), failed('OTHER', failed(code))]) {
    const said = reasonWithAdvice(error)
    expect(said).toContain(advice)
    expect(said).not.toContain('\n')
  }
})

test('of all else it gives the reason', () => {
  expect(reasonWithAdvice(failed('OTHER'))).toBe('it failed: OTHER')
})
