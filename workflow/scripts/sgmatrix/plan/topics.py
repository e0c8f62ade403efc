"""Words of a few topics, for prompts that make a model route unevenly without a download.

A mixture-of-experts model sends words of one field to few experts; random ids spread evenly
over all of them. Plain lower case words, so that most tokenizers have them as one token.
"""

TOPICS: dict[str, str] = {
    "cooking": "flour butter sugar oven bake dough salt pepper onion garlic sauce boil simmer fry "
    "roast stir whisk yeast cream cheese lemon basil spoon recipe pan crust broth olive rice soup",
    "medicine": "patient dose fever blood artery nurse clinic symptom therapy vaccine infection "
    "surgery lung kidney heart nerve tumor chronic acute relief tablet pulse scan bone skin cell "
    "trial immune virus doctor",
    "law": "court judge contract clause tenant plaintiff appeal statute verdict lawyer evidence "
    "witness claim damages liable treaty permit trust estate jury oath hearing motion rule penalty "
    "custody fraud consent bail party",
    "code": "function return class string array loop index stack queue hash thread mutex compile "
    "linker kernel buffer pointer integer float cache commit branch merge debug parser token tree "
    "graph socket module",
    "sea": "ship harbour tide anchor sail captain wave coral whale storm coast reef deck cargo "
    "lighthouse island current rope fleet net salmon gull shore dock hull mast drift lagoon squid "
    "ferry",
    "music": "melody chord rhythm violin piano tempo drum choir opera lyric guitar flute harmony "
    "concert stage singer tune scale octave bass trumpet ballad chorus beat record solo note score "
    "cello band",
}

COMMON = (
    "the a of to and in that is for on with as at by from this which are be it more than when one "
    "first then often how why each after before while between"
)
