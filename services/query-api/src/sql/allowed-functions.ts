/**
 * The functions that a statement may call, by their names in lower case. Other ones read files, dictionaries, settings or the
 * network, sleep, tell about the server and its other accounts, or are defined by an operator. Those whose cost is a product of
 * the sizes of their arguments are missing too: ClickHouse ends no function within a block, whatever the time limit is
 * (docs/design/decisions/0072-statements-that-do-not-end.md).
 */
const FUNCTIONS = `
  _cast abs accuratecast accuratecastordefault accuratecastornull acos acosh adddate adddays addhours addinterval
  addmicroseconds addmilliseconds addminutes addmonths addnanoseconds addquarters addseconds addtupleofintervals
  addweeks addyears aes_decrypt_mysql aes_encrypt_mysql age alphatokens and appendtrailingcharifabsent areacartesian
  areaspherical array array_remove array_to_string arrayall arrayauc arrayaucpr arrayautocorrelation arrayavg
  arraybottomk arraycompact arrayconcat arraycount arraycumsum arraycumsumnonnegative arraydifference arraydistinct
  arraydotproduct arrayelement arrayelementornull arrayenumerate arrayenumeratedense arrayenumeratedenseranked
  arrayenumerateuniq arrayenumerateuniqranked arrayexcept arrayexists arrayfill arrayfilter arrayfirst arrayfirstindex
  arrayfirstornull arrayflatten arrayfold arrayintersect arrayjaccardindex arrayjoin arraylast arraylastindex
  arraylastornull arraymap arraymax arraymin arraynormalizedgini arraypartialreversesort arraypartialshuffle
  arraypartialsort arraypopback arraypopfront arrayprauc arrayproduct arraypushback arraypushfront arrayrandomsample
  arrayreduce arrayreduceinranges arrayremove arrayresize arrayreverse arrayreversefill arrayreversesort
  arrayreversesplit arrayrocauc arrayrotateleft arrayrotateright arrayshiftleft arrayshiftright arrayshingles
  arrayshuffle arrayslice arraysort arraysplit arraystringconcat arraysum arraysymmetricdifference arraytopk
  arraytranspose arrayunion arrayuniq arraywithconstant arrayzip arrayzipunaligned ascii asin asinh assumenotnull atan
  atan2 atanh avg2 bar base32decode base32encode base58decode base58encode base64decode base64encode base64urldecode
  base64urlencode basename bin bitand bitcount bithammingdistance bitmapand bitmapandcardinality bitmapandnot
  bitmapandnotcardinality bitmapbuild bitmapcardinality bitmapcontains bitmaphasall bitmaphasany bitmapmax bitmapmin
  bitmapor bitmaporcardinality bitmapsubsetinrange bitmapsubsetlimit bitmaptoarray bitmaptransform bitmapxor
  bitmapxorcardinality bitmasktoarray bitmasktolist bitnot bitor bitpositionstoarray bitrotateleft bitrotateright
  bitshiftleft bitshiftright bitslice bittest bittestall bittestany bitxor bytehammingdistance bytesize byteslice
  byteswap cardinality casefoldutf8 casewithexpr casewithexpression casewithoutexpr casewithoutexpression cast cbrt
  ceil ceiling changeday changehour changeminute changemonth changesecond changeyear char char_length character_length
  cityhash64 clamp coalesce coloroklabtosrgb coloroklchtosrgb colorsrgbtooklab colorsrgbtooklch comparesubstrings
  concat concat_ws concatassumeinjective concatwithseparator concatwithseparatorassumeinjective connection_id conv
  convertcharset cos cosh cosinedistance countdigits countequal countmatches countmatchescaseinsensitive
  countsubstrings countsubstringscaseinsensitive countsubstringscaseinsensitiveutf8 crc32 crc32ieee crc64 curdate
  current_date current_timestamp cutfragment cutipv6 cutquerystring cutquerystringandfragment
  cuttofirstsignificantsubdomain cuttofirstsignificantsubdomaincustom cuttofirstsignificantsubdomaincustomrfc
  cuttofirstsignificantsubdomaincustomwithwww cuttofirstsignificantsubdomaincustomwithwwwrfc
  cuttofirstsignificantsubdomainrfc cuttofirstsignificantsubdomainwithwww cuttofirstsignificantsubdomainwithwwwrfc
  cuturlparameter cutwww date date_bin date_diff date_format date_trunc datediff datename datetime64tosnowflakeid
  datetimetosnowflakeid datetimetouuidv7 datetrunc day dayofmonth dayofweek dayofyear decodehtmlcomponent
  decodeurlcomponent decodeurlformcomponent decodexmlcomponent decrypt defaultvalueoftypename degrees digits
  distancecosine distancel1 distancel2 distancel2squared distancelinf distancelp divide dividedecimal divideornull
  domain domainrfc domainwithoutwww domainwithoutwwwrfc dotproduct dynamicelement dynamictype e empty emptyarraydate
  emptyarraydatetime emptyarrayfloat32 emptyarrayfloat64 emptyarrayint16 emptyarrayint32 emptyarrayint64
  emptyarrayint8 emptyarraystring emptyarraytosingle emptyarrayuint16 emptyarrayuint32 emptyarrayuint64
  emptyarrayuint8 encodeurlcomponent encodeurlformcomponent encodexmlcomponent encrypt endswith
  endswithcaseinsensitive endswithcaseinsensitiveutf8 endswithutf8 equals erf erfc exp exp10 exp2 extract extractall
  extractallgroups extractallgroupshorizontal extractallgroupsvertical extractgroups extractkeyvaluepairs
  extractkeyvaluepairswithescaping extracttextfromhtml extracturlparameter extracturlparameternames
  extracturlparameters factorial farmfingerprint64 farmhash64 financialinternalrateofreturn
  financialinternalrateofreturnextended financialnetpresentvalue financialnetpresentvalueextended firstline
  firstnondefault firstsignificantsubdomain firstsignificantsubdomaincustom firstsignificantsubdomaincustomrfc
  firstsignificantsubdomainrfc flatten flattentuple floor format_bytes formatdatetime formatdatetimeinjodasyntax
  formatreadabledecimalsize formatreadablequantity formatreadablesize formatreadabletimedelta fragment from_base64
  from_days from_unixtime from_utc_timestamp fromdayssinceyearzero fromdayssinceyearzero32 frommodifiedjulianday
  frommodifiedjuliandayornull fromunixtimestamp fromunixtimestamp64micro fromunixtimestamp64milli
  fromunixtimestamp64nano fromunixtimestamp64second fromunixtimestampinjodasyntax fromutctimestamp gccmurmurhash gcd
  generatesnowflakeid generateuuidv4 generateuuidv7 geodistance geohashdecode geohashencode geohashesinbox geotoh3
  geotomgrs geotoutm getsizeofenumtype getsubcolumn globalin globalnotin globalnotnullin globalnullin greatcircleangle
  greatcircledistance greater greaterorequals greatest h3cellaream2 h3cellarearads2 h3distance h3edgeangle
  h3edgelengthkm h3edgelengthm h3exactedgelengthkm h3exactedgelengthm h3exactedgelengthrads h3getbasecell
  h3getdestinationindexfromunidirectionaledge h3getfaces h3getindexesfromunidirectionaledge
  h3getoriginindexfromunidirectionaledge h3getpentagonindexes h3getres0indexes h3getresolution h3getunidirectionaledge
  h3getunidirectionaledgeboundary h3getunidirectionaledgesfromhexagon h3hexareakm2 h3hexaream2 h3indexesareneighbors
  h3ispentagon h3isresclassiii h3isvalid h3line h3numhexagons h3pointdistkm h3pointdistm h3pointdistrads
  h3tocenterchild h3tochildren h3togeo h3togeoboundary h3toparent h3tostring h3unidirectionaledgeisvalid halfmd5 has
  hasall hasalltoken hasalltokens hasany hasanytoken hasanytokens hasphrase hassubsequence
  hassubsequencecaseinsensitive hassubsequencecaseinsensitiveutf8 hassubsequenceutf8 hassubstr hastoken
  hastokencaseinsensitive hastokencaseinsensitiveornull hastokenornull hex highlight hilbertdecode hilbertencode
  hivehash hmac hour hypot identity if ifnotfinite ifnull ilike in indexof indexofassumesorted inet6_aton inet6_ntoa
  inet_aton inet_ntoa initcap initcaputf8 initializeaggregation instr intdiv intdivornull intdivorzero intexp10
  intexp2 inthash32 inthash64 ipv4cidrtorange ipv4numtostring ipv4numtostringclassc ipv4stringtonum
  ipv4stringtonumordefault ipv4stringtonumornull ipv4toipv6 ipv6cidrtorange ipv6numtostring ipv6stringtonum
  ipv6stringtonumordefault ipv6stringtonumornull isascii isdecimaloverflow isdistinctfrom isdynamicelementinshareddata
  isfinite isinfinite isipaddressinrange isipv4string isipv6string isnan isnotdistinctfrom isnotnull isnull isnullable
  isprime isprobableprime isvalidascii isvalidjson isvalidutf8 iszeroornull javahash javahashutf16le json_array_length
  jsonallpaths jsonallpathswithtypes jsonallvalues jsonarraylength jsondynamicpaths jsondynamicpathswithtypes
  jsonextract jsonextractarrayraw jsonextractarrayrawcaseinsensitive jsonextractbool jsonextractboolcaseinsensitive
  jsonextractcaseinsensitive jsonextractfloat jsonextractfloatcaseinsensitive jsonextractint
  jsonextractintcaseinsensitive jsonextractkeys jsonextractkeysandvalues jsonextractkeysandvaluescaseinsensitive
  jsonextractkeysandvaluesraw jsonextractkeysandvaluesrawcaseinsensitive jsonextractkeyscaseinsensitive jsonextractraw
  jsonextractrawcaseinsensitive jsonextractstring jsonextractstringcaseinsensitive jsonextractuint
  jsonextractuintcaseinsensitive jsonhas jsonlength jsonmergepatch jsonshareddatapaths jsonshareddatapathswithtypes
  jsontype jumpconsistenthash kafkamurmurhash keccak256 kostikconsistenthash l1distance l1norm l1normalize l2distance
  l2norm l2normalize l2squareddistance l2squarednorm last_day lcase lcm least left leftpad leftpadutf8 leftutf8 length
  lengthutf8 less lessorequals lgamma like linfdistance linfnorm linfnormalize ln localtime localtimestamp locate log
  log10 log1p log2 lower lowerutf8 lpad lpdistance lpnorm lpnormalize ltrim macnumtostring macstringtonum
  macstringtooui makedate makedate32 makedatetime makedatetime64 map map_from_arrays mapadd mapall mapapply mapconcat
  mapcontains mapcontainskey mapcontainskeylike mapcontainsvalue mapcontainsvaluelike mapexists mapextractkeylike
  mapextractvaluelike mapfilter mapfromarrays mapfromstring mapkeys mappartialreversesort mappartialsort
  mappopulateseries mapreversesort mapsort mapsubtract mapupdate mapvalues match matchphrase materialize max2 md4 md5
  metrohash64 mgrstogeo microsecond mid midpoint millisecond min2 minsamplesizecontinous minsamplesizecontinuous
  minsamplesizeconversion minus minute mismatches mod modornull modulo modulolegacy moduloornull moduloorzero month
  monthname mortondecode mortonencode multiif multiply multiplydecimal multisearchallpositions
  multisearchallpositionscaseinsensitive multisearchallpositionscaseinsensitiveutf8 multisearchallpositionsutf8
  multisearchany multisearchanycaseinsensitive multisearchanycaseinsensitiveutf8 multisearchanyutf8
  multisearchfirstindex multisearchfirstindexcaseinsensitive multisearchfirstindexcaseinsensitiveutf8
  multisearchfirstindexutf8 multisearchfirstposition multisearchfirstpositioncaseinsensitive
  multisearchfirstpositioncaseinsensitiveutf8 multisearchfirstpositionutf8 murmurhash2_32 murmurhash2_64
  murmurhash3_128 murmurhash3_32 murmurhash3_64 nanosecond natural_sort_key naturalsortkey negate neighbor nested
  netloc ngramdistance ngramdistancecaseinsensitive ngramdistancecaseinsensitiveutf8 ngramdistanceutf8 ngramminhash
  ngramminhasharg ngramminhashargcaseinsensitive ngramminhashargcaseinsensitiveutf8 ngramminhashargutf8
  ngramminhashcaseinsensitive ngramminhashcaseinsensitiveutf8 ngramminhashutf8 ngrams ngramsearch
  ngramsearchcaseinsensitive ngramsearchcaseinsensitiveutf8 ngramsearchutf8 ngramsimhash ngramsimhashcaseinsensitive
  ngramsimhashcaseinsensitiveutf8 ngramsimhashutf8 normalizedqueryhash normalizedqueryhashkeepnames normalizel1
  normalizel2 normalizelinf normalizelp normalizequery normalizequerykeepnames normalizeutf8nfc normalizeutf8nfd
  normalizeutf8nfkc normalizeutf8nfkccasefold normalizeutf8nfkd norml1 norml2 norml2squared normlinf normlp not
  notempty notequals notilike notin notlike notnullin now now64 nowinblock nowinblock64 nullif nullin
  numericindexedvectorallvaluesum numericindexedvectorbuild numericindexedvectorcardinality
  numericindexedvectorgetvalue numericindexedvectorpointwiseadd numericindexedvectorpointwisedivide
  numericindexedvectorpointwiseequal numericindexedvectorpointwisegreater numericindexedvectorpointwisegreaterequal
  numericindexedvectorpointwiseless numericindexedvectorpointwiselessequal numericindexedvectorpointwisemultiply
  numericindexedvectorpointwisenotequal numericindexedvectorpointwisesubtract numericindexedvectorshortdebugstring
  numericindexedvectortomap octet_length or overlay overlayutf8 parsedatetime parsedatetime32besteffort
  parsedatetime32besteffortornull parsedatetime32besteffortorzero parsedatetime64 parsedatetime64besteffort
  parsedatetime64besteffortornull parsedatetime64besteffortorzero parsedatetime64besteffortus
  parsedatetime64besteffortusornull parsedatetime64besteffortusorzero parsedatetime64injodasyntax
  parsedatetime64injodasyntaxornull parsedatetime64injodasyntaxorzero parsedatetime64ornull parsedatetime64orzero
  parsedatetimebesteffort parsedatetimebesteffortornull parsedatetimebesteffortorzero parsedatetimebesteffortus
  parsedatetimebesteffortusornull parsedatetimebesteffortusorzero parsedatetimeinjodasyntax
  parsedatetimeinjodasyntaxornull parsedatetimeinjodasyntaxorzero parsedatetimeornull parsedatetimeorzero
  parsereadablesize parsereadablesizeornull parsereadablesizeorzero parsetimedelta path pathfull perimetercartesian
  perimeterspherical pi plus pmod pmodornull pointinellipses pointinpolygon polygonareacartesian polygonareaspherical
  polygonconvexhullcartesian polygonperimetercartesian polygonperimeterspherical port portrfc position
  positioncaseinsensitive positioncaseinsensitiveutf8 positionutf8 positive_modulo positive_modulo_or_null
  positivemodulo positivemoduloornull pow power prettyprintjson printf proportionsztest protocol quarter querystring
  querystringandfragment radians rand rand32 rand64 randbernoulli randbinomial randcanonical randchisquared
  randconstant randexponential randfisherf randlognormal randnegativebinomial randnormal randomfixedstring
  randomprintableascii randomstring randomstringutf8 randpoisson randstudentt randuniform range readwkb
  readwkblinestring readwkbmultilinestring readwkbmultipolygon readwkbpoint readwkbpolygon readwkt readwktlinestring
  readwktmultilinestring readwktmultipolygon readwktpoint readwktpolygon readwktring regexp_extract regexp_instr
  regexp_matches regexp_replace regexp_substr regexpextract regexpinstr regexpposition regexpquotemeta reinterpret
  reinterpretasdate reinterpretasdatetime reinterpretasfixedstring reinterpretasfloat32 reinterpretasfloat64
  reinterpretasint128 reinterpretasint16 reinterpretasint256 reinterpretasint32 reinterpretasint64 reinterpretasint8
  reinterpretasstring reinterpretasuint128 reinterpretasuint16 reinterpretasuint256 reinterpretasuint32
  reinterpretasuint64 reinterpretasuint8 reinterpretasuuid removeaccentsutf8 removediacriticsutf8 repeat replace
  replaceall replaceone replaceregexpall replaceregexpone replicate reverse reversebyseparator reverseutf8 right
  rightpad rightpadutf8 rightutf8 ripemd160 round roundage roundbankers rounddown roundduration roundtoexp2
  rownumberinallblocks rownumberinblock rpad rtrim runningconcurrency runningdifference
  runningdifferencestartingwithfirstvalue scalarproduct second seriesdecomposestl seriesoutliersdetecttukey sha1
  sha224 sha256 sha384 sha512 sha512_256 sigmoid sign simplejsonextractbool simplejsonextractfloat
  simplejsonextractint simplejsonextractraw simplejsonextractstring simplejsonextractuint simplejsonhas sin sinh
  siphash128 siphash128keyed siphash128reference siphash128referencekeyed siphash64 siphash64keyed
  snowflakeidtodatetime snowflakeidtodatetime64 soundex space sparsegrams sparsegramshashes sparsegramshashesutf8
  sparsegramsutf8 splitbyalpha splitbychar splitbynonalpha splitbyregexp splitbystring splitbywhitespace sqid
  sqiddecode sqidencode sqr sqrt st_linefromwkb st_mlinefromwkb st_mpolyfromwkb st_pointfromwkb st_polyfromwkb
  startswith startswithcaseinsensitive startswithcaseinsensitiveutf8 startswithutf8 str_to_date str_to_map
  stringbytesentropy stringbytesuniq stringjaccardindex stringjaccardindexutf8 stringtoh3 subbitmap subdate substr
  substring substring_index substringindex substringindexutf8 substringutf8 subtractdays subtracthours
  subtractinterval subtractmicroseconds subtractmilliseconds subtractminutes subtractmonths subtractnanoseconds
  subtractquarters subtractseconds subtracttupleofintervals subtractweeks subtractyears svg tan tanh tgamma throwif
  time_bucket timediff timeslot timeslots timestamp timestamp_diff timestampdiff timezone timezoneof timezoneoffset
  to_base64 to_days to_unixtime to_utc_timestamp tobfloat16 tobfloat16ornull tobfloat16orzero tobool todate todate32
  todate32ordefault todate32ornull todate32orzero todateordefault todateornull todateorzero todatetime todatetime32
  todatetime64 todatetime64ordefault todatetime64ornull todatetime64orzero todatetimeordefault todatetimeornull
  todatetimeorzero today todayofmonth todayofweek todayofyear todaysinmonth todayssinceyearzero todecimal128
  todecimal128ordefault todecimal128ornull todecimal128orzero todecimal256 todecimal256ordefault todecimal256ornull
  todecimal256orzero todecimal32 todecimal32ordefault todecimal32ornull todecimal32orzero todecimal64
  todecimal64ordefault todecimal64ornull todecimal64orzero todecimalstring tofixedstring tofloat32 tofloat32ordefault
  tofloat32ornull tofloat32orzero tofloat64 tofloat64ordefault tofloat64ornull tofloat64orzero tohour toint128
  toint128ordefault toint128ornull toint128orzero toint16 toint16ordefault toint16ornull toint16orzero toint256
  toint256ordefault toint256ornull toint256orzero toint32 toint32ordefault toint32ornull toint32orzero toint64
  toint64ordefault toint64ornull toint64orzero toint8 toint8ordefault toint8ornull toint8orzero tointerval
  tointervalday tointervalhour tointervalmicrosecond tointervalmillisecond tointervalminute tointervalmonth
  tointervalnanosecond tointervalquarter tointervalsecond tointervalweek tointervalyear toipv4 toipv4ordefault
  toipv4ornull toipv4orzero toipv6 toipv6ordefault toipv6ornull toipv6orzero toisoweek toisoyear tojsonstring tokens
  tokensforlikepattern tolastdayofmonth tolastdayofweek tolowcardinality tomicrosecond tomillisecond tominute
  tomodifiedjulianday tomodifiedjuliandayornull tomonday tomonth tomonthnumsinceepoch tonanosecond tonullable
  topleveldomain topleveldomainrfc toquarter torelativedaynum torelativehournum torelativeminutenum torelativemonthnum
  torelativequarternum torelativesecondnum torelativeweeknum torelativeyearnum tosecond tostartofday
  tostartoffifteenminutes tostartoffiveminute tostartoffiveminutes tostartofhour tostartofinterval tostartofisoyear
  tostartofmicrosecond tostartofmillisecond tostartofminute tostartofmonth tostartofnanosecond tostartofquarter
  tostartofsecond tostartoftenminutes tostartofweek tostartofyear tostring tostringcuttozero totime totime64
  totime64ornull totime64orzero totimeornull totimeorzero totimewithfixeddate totimezone totypename touint128
  touint128ordefault touint128ornull touint128orzero touint16 touint16ordefault touint16ornull touint16orzero
  touint256 touint256ordefault touint256ornull touint256orzero touint32 touint32ordefault touint32ornull
  touint32orzero touint64 touint64ordefault touint64ornull touint64orzero touint8 touint8ordefault touint8ornull
  touint8orzero tounixtimestamp tounixtimestamp64micro tounixtimestamp64milli tounixtimestamp64nano
  tounixtimestamp64second toutctimestamp touuid touuidordefault touuidornull touuidorzero tovalidutf8 toweek toyear
  toyearnumsinceepoch toyearweek toyyyymm toyyyymmdd toyyyymmddhhmmss transform translate translateutf8 trim trimboth
  trimleft trimright trunc truncate trybase32decode trybase58decode trybase64decode trybase64urldecode trydecrypt
  tuple tupleconcat tupledivide tupledividebynumber tupleelement tuplehammingdistance tupleintdiv tupleintdivbynumber
  tupleintdivorzero tupleintdivorzerobynumber tupleminus tuplemodulo tuplemodulobynumber tuplemultiply
  tuplemultiplybynumber tuplenames tuplenegate tupleplus tuplepositivemodulobynumber tupletonamevaluepairs ucase unbin
  unhex unnest upper upperutf8 urlhash urlhierarchy urlpathhierarchy utc_timestamp utctimestamp utmtogeo
  uuidnumtostring uuidstringtonum uuidtonum uuidv7todatetime variantelement varianttype vectordifference vectorsum
  visiblewidth visitparamextractbool visitparamextractfloat visitparamextractint visitparamextractraw
  visitparamextractstring visitparamextractuint visitparamhas week width_bucket widthbucket wkb wkt wordshingleminhash
  wordshingleminhasharg wordshingleminhashargcaseinsensitive wordshingleminhashargcaseinsensitiveutf8
  wordshingleminhashargutf8 wordshingleminhashcaseinsensitive wordshingleminhashcaseinsensitiveutf8
  wordshingleminhashutf8 wordshinglesimhash wordshinglesimhashcaseinsensitive wordshinglesimhashcaseinsensitiveutf8
  wordshinglesimhashutf8 wyhash64 xor xxh3 xxh3_128 xxhash32 xxhash64 xxhash64spark yandexconsistenthash year yearweek
  yesterday yyyymmddhhmmsstodatetime yyyymmddhhmmsstodatetime64 yyyymmddtodate yyyymmddtodate32
`;

/** Aggregate and window functions, which may have combinators behind their names. */
const AGGREGATES = `
  analysisofvariance anova any any_respect_nulls any_value any_value_respect_nulls anyheavy anylast
  anylast_respect_nulls anylastrespectnulls anyrespectnulls anyvaluerespectnulls approx_top_count approx_top_k
  approx_top_sum argandmax argandmin argmax argmin array_agg array_concat_agg avg avgweighted bit_and bit_or bit_xor
  boundingratio categoricalinformationvalue contingency corr corrmatrix corrstable count covar_pop covar_samp covarpop
  covarpopmatrix covarpopstable covarsamp covarsampmatrix covarsampstable cramersv cramersvbiascorrected cume_dist
  deltasum deltasumtimestamp dense_rank denserank distinctdynamictypes distinctjsonpaths distinctjsonpathsandtypes
  entropy exponentialmovingaverage exponentialtimedecayedavg exponentialtimedecayedcount exponentialtimedecayedmax
  exponentialtimedecayedsum first_value first_value_respect_nulls firstvaluerespectnulls group_concat grouparray
  grouparrayinsertat grouparrayintersect grouparraylast grouparraymovingavg grouparraymovingsum grouparraysample
  grouparraysorted groupbitand groupbitmap groupbitmapand groupbitmapor groupbitmapxor groupbitor groupbitxor
  groupconcat groupnumericindexedvector groupuniqarray histogram intervallengthsum kurtpop kurtsamp lag laginframe
  largesttrianglethreebuckets last_value last_value_respect_nulls lastvaluerespectnulls lead leadinframe lttb max
  max_by maxintersections maxintersectionsposition maxmappedarrays meanztest median medianbfloat16
  medianbfloat16weighted mediandd mediandeterministic medianexact medianexacthigh medianexactlow medianexactweighted
  medianexactweightedinterpolated mediangk medianinterpolatedweighted mediantdigest mediantdigestweighted mediantiming
  mediantimingweighted min min_by minmappedarrays nonnegativederivative nth_value ntile percent_rank percentrank
  quantile quantilebfloat16 quantilebfloat16weighted quantiledd quantiledeterministic quantileexact
  quantileexactexclusive quantileexacthigh quantileexactinclusive quantileexactlow quantileexactweighted
  quantileexactweightedinterpolated quantilegk quantileinterpolatedweighted quantileprometheushistogram quantiles
  quantilesbfloat16 quantilesbfloat16weighted quantilesdd quantilesdeterministic quantilesexact
  quantilesexactexclusive quantilesexacthigh quantilesexactinclusive quantilesexactlow quantilesexactweighted
  quantilesexactweightedinterpolated quantilesgk quantilesinterpolatedweighted quantilesprometheushistogram
  quantilestdigest quantilestdigestweighted quantilestiming quantilestimingweighted quantiletdigest
  quantiletdigestweighted quantiletiming quantiletimingweighted rank rankcorr retention row_number sequencecount
  sequencematch sequencematchevents sequencenextnode simplelinearregression singlevalueornull skewpop skewsamp
  sparkbar std stddev stddev_pop stddev_samp stddevpop stddevpopstable stddevsamp stddevsampstable string_agg
  studentttest studentttestonesample sum sumcount sumkahan summapfiltered summapfilteredwithoverflow summappedarrays
  summapwithoverflow sumwithoverflow theilsu topk topkweighted uniq uniqcombined uniqcombined64 uniqexact uniqhll12
  uniqupto var_pop var_samp varpop varpopstable varsamp varsampstable welchttest windowfunnel
`;

/** What ClickHouse writes in an AST like functions, and runs itself. */
const FORMS = 'exists grouping lambda untuple';

/** Table functions that read nothing. */
const TABLE_FUNCTIONS = 'generate_series generateseries numbers numbers_mt';

/** Functions whose first argument may be another function, where they have several. */
const HIGHER_ORDER = `
  arrayall arrayavg arraycompact arraycount arraycumsum arraycumsumnonnegative arraydifference arrayexists arrayfill
  arrayfilter arrayfirst arrayfirstindex arrayfirstornull arrayfold arraylast arraylastindex arraylastornull arraymap
  arraymax arraymin arraypartialreversesort arraypartialsort arrayproduct arrayreversefill arrayreversesort
  arrayreversesplit arraysort arraysplit arraysum mapall mapapply mapexists mapfilter mappartialreversesort
  mappartialsort mapreversesort mapsort
`;

/** Functions that call an aggregate function, whose name is their first argument. */
const CALLING_BY_NAME = 'arrayreduce arrayreduceinranges initializeaggregation';

const COMBINATORS = /(?:if|array|distinct|foreach|map|null|ordefault|ornull|argmax|argmin|resample|tuple|state|merge)$/;

const names = (list: string): string[] => list.trim().split(/\s+/);

const ALLOWED: ReadonlySet<string> = new Set([
  ...names(FUNCTIONS),
  ...names(AGGREGATES),
  ...names(FORMS),
  ...names(TABLE_FUNCTIONS),
]);
const AGGREGATE_NAMES: ReadonlySet<string> = new Set(names(AGGREGATES));
const TABLE_FUNCTION_NAMES: ReadonlySet<string> = new Set(names(TABLE_FUNCTIONS));
const HIGHER_ORDER_NAMES: ReadonlySet<string> = new Set(names(HIGHER_ORDER));
const NAMES_CALLING_BY_NAME: ReadonlySet<string> = new Set(names(CALLING_BY_NAME));

/** Whether a statement may call a function. */
export function isAllowedFunction(name: string): boolean {
  const lower = name.toLowerCase();
  return ALLOWED.has(lower) || isCombined(lower);
}

/** Whether a statement may read a table function. */
export function isAllowedTableFunction(name: string): boolean {
  return TABLE_FUNCTION_NAMES.has(name.toLowerCase());
}

/** Whether ClickHouse takes a name that is the first of several arguments as that of a function. */
export function isHigherOrder(name: string): boolean {
  return HIGHER_ORDER_NAMES.has(name.toLowerCase());
}

/** Whether the first argument is the name of an aggregate function. */
export function callsByName(name: string): boolean {
  return NAMES_CALLING_BY_NAME.has(name.toLowerCase());
}

/**
 * Whether a literal, with its quotes, is the name of an aggregate function that a statement may call. It may have parameters, but only
 * numbers: ClickHouse evaluates them.
 */
export function isAggregateName(literal: string): boolean {
  const [, name = ''] = /^'(\w+)(?:\([\d., ]*\))?'$/.exec(literal) ?? [];
  const lower = name.toLowerCase();
  return AGGREGATE_NAMES.has(lower) || isCombined(lower);
}

/** Whether a name is that of an aggregate function with combinators, such as `sumOrNullIf`. */
function isCombined(name: string): boolean {
  const shorter = name.replace(COMBINATORS, '');
  return shorter !== name && (AGGREGATE_NAMES.has(shorter) || isCombined(shorter));
}
