import { parseEnv } from 'node:util'
import { lineWithoutSetting } from '../../../src/cli/settings-file.js'

describe('the first line of minetree.env without a setting', () => {
  test.each<[string, string, number]>([
    ['a word', 'PORT=1\nPROFILE mainnet\n', 2],
    ['a name alone', '# settings\n\nPORT\n', 3],
    ['a value alone', '=1', 1],
    ['two words in place of a name', 'MY PORT=1', 1],
    ['another encoding', '\ufffd\ufffdP\0O\0R\0T\0=\0', 1],
    ['a line behind a quoted value of two lines', 'A="x\ny"\nB', 3],
  ])('%s', (_, text, line) => {
    expect(lineWithoutSetting(text)).toBe(line)
  })

  test.each<[string, string, object]>([
    ['nothing', '', {}],
    ['comments, also behind settings, with quotes', '# a="b\r\nA=1 # c "\r\n \t\n', { A: '1' }],
    ['quoted values', 'A="x\ny" # c\nB=\'#\'\n  export C=`d=e`', { A: 'x\ny', B: '#', C: 'd=e' }],
    ['empty values, and a quote that does not end', 'A=\nB="c\nD=', { A: '', B: '"c', D: '' }],
  ])('is none in %s', (_, text, settings) => {
    expect(lineWithoutSetting(text)).toBeUndefined()
    expect(parseEnv(text)).toEqual(settings)
  })
})
