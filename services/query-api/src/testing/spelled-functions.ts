/** Ways in which a statement can name a function: an expression, by the function's name and a number that is its own. */
export const SPELLINGS: Readonly<Record<string, (name: string, index: number) => string>> = {
  'a call': (name) => `\`${name}\`('/etc/passwd')`,
  'a call in double quotes': (name) => `"${name}"()`,
  'a call in a lambda': (name) => `arrayMap(x -> \`${name}\`(x), ['/etc/passwd'])`,
  'a name in backticks': (name) => `arrayMap(\`${name}\`, ['/etc/passwd'])`,
  'a name in double quotes': (name) => `arrayFilter("${name}", ['/etc/passwd'])`,
  'a name in brackets': (name) => `arraySort((\`${name}\`), ['/etc/passwd'])`,
  'a name with an alias': (name, index) => `arrayFirst(\`${name}\` AS a${index}, ['/etc/passwd'])`,
  'a name of several arguments': (name) => `arrayFold(\`${name}\`, ['/etc/passwd'], '')`,
  'a name for a map': (name) => `mapApply(\`${name}\`, map('a', '/etc/passwd'))`,
  'a name that is also an alias elsewhere': (name) =>
    `(arrayMap(\`${name}\`, ['/etc/passwd']), (SELECT 1 AS \`${name}\`))`,
  'a name in a scalar sub-select': (name) => `(SELECT [arrayMap(\`${name}\`, ['/etc/passwd'])])`,
  'a parameter': (_, index) => `arrayMap({f${index}:Identifier}, ['/etc/passwd'])`,
  'a text': (name) => `arrayReduce('${name}', [1])`,
  'a text for ranges': (name) => `arrayReduceInRanges('${name}', [(1, 1)], [1])`,
  'a text for a state': (name) => `initializeAggregation('${name}State', 1)`,
  'a parameter in a text': (name) => `arrayReduce('groupConcat(${name}(\\'/etc/passwd\\'))', ['a'])`,
  'a combinator': (name) => `\`${name}OrNullIf\`(1, 1)`,
  'a merge of states': (name) => `\`${name}Merge\`('')`,
  'a type': (name) => `CAST('' AS AggregateFunction(\`${name}\`, UInt8))`,
  'a type in a text': (name) => `defaultValueOfTypeName('AggregateFunction(\`${name}\`, UInt8)')`,
};
